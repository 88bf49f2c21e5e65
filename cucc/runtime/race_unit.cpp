// SPDX-License-Identifier: MIT
// The race detector: what instrumented code calls, the order of accesses, and the report
#include "race/race.cpp"
#include "race/race_hooks.cpp"
#include "race/race_order.cpp"
#include "race/race_report.cpp"
