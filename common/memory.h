// until all programs are converted
#include "book.h"
