// SPDX-License-Identifier: MIT
#pragma once
#include "cusparse.h"
