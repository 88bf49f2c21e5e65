// SPDX-License-Identifier: MIT
// The threads of a block: their order, fibers, barriers, warps and shared memory
#include "block/block.cpp"
#include "block/fiber.cpp"
#include "block/shared.cpp"
#include "block/warp.cpp"
