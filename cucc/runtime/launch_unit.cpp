// SPDX-License-Identifier: MIT
// Launches: the configuration, the workers that run the blocks of a grid, and grids that wait
#include "launch/launch.cpp"
#include "launch/child_grids.cpp"
#include "launch/function.cpp"
#include "launch/waiting.cpp"
#include "launch/watchdog.cpp"
#include "launch/workers.cpp"
