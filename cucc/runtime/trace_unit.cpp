// SPDX-License-Identifier: MIT
// The record of a launch that trace.py draws
#include "trace/trace.cpp"
#include "trace/trace_steps.cpp"
