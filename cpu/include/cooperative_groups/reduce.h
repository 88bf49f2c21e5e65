// SPDX-License-Identifier: MIT
// A header of the toolkit. reduce() and its operators are in cooperative_groups.h here.
#pragma once
#include "../cooperative_groups.h"
