// SPDX-License-Identifier: MIT
#pragma once
#include "cutil.h"
