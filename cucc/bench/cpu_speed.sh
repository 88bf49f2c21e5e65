#!/bin/sh
# SPDX-License-Identifier: MIT
# Times the CPU back end beside plain C loops with OpenMP: see cpu_speed.cu.
set -eu
cd "${0%/*}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
../cucc -Xcompiler -fopenmp cpu_speed.cu -o "$folder/cpu_speed"
# By default OpenMP's idle threads spin for milliseconds, which would take a core from the kernel that is timed next.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY-passive}"
"$folder/cpu_speed"
