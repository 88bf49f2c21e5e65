// SPDX-License-Identifier: MIT
// A header of CUB. Its content is in cub.cuh here.
#pragma once
#include "../cub.cuh"
