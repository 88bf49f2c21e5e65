// SPDX-License-Identifier: MIT
// A header of the toolkit. Its content is in nvtx3/nvToolsExt.h here.
#pragma once
#include "nvtx3/nvToolsExt.h"
