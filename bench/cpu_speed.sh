#!/bin/sh
# SPDX-License-Identifier: MIT
# Times the CPU back end beside plain C loops with OpenMP: see cpu_speed.cu.
set -eu
cd "${0%/*}/.."
make --no-print-directory BACKEND=cpu BUILD=build/speed BIN=build/speed/bin \
    CXXFLAGS=-fopenmp LDFLAGS=-fopenmp bench/cpu_speed
# OpenMP's idle threads would otherwise hold a core for milliseconds, while the other side's turn has come.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY-passive}"
exec build/speed/bin/bench/cpu_speed
