#!/bin/sh
# SPDX-License-Identifier: MIT
# Times the CPU back end beside plain C loops with OpenMP: see cpu_speed.cu.
set -eu
cd "${0%/*}/../.."
make --no-print-directory BACKEND=cpu BUILD=build/speed BIN=build/speed/bin \
    CXXFLAGS=-fopenmp LDFLAGS=-fopenmp cpu/bench/cpu_speed
# By default OpenMP's idle threads spin for milliseconds, which would take a core from the kernel that is timed next.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY-passive}"
exec build/speed/bin/cpu/bench/cpu_speed
