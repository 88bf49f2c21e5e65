// SPDX-License-Identifier: MIT
// A header of the toolkit. Its content is in host_defines.h here.
#pragma once
#include "../host_defines.h"
