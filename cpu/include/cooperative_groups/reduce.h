// SPDX-License-Identifier: MIT
// reduce() and its operations come with the groups themselves.
#pragma once
#include "../cooperative_groups.h"
