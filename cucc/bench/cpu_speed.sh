#!/bin/sh
# SPDX-License-Identifier: MIT
# Times the CPU back end beside plain C loops with OpenMP, and beside OpenCL where there is one for the processor (on Debian the
# packages pocl-opencl-icd and ocl-icd-opencl-dev): see cpu_speed.cu. The exit status is 0 if all results are equal.
#   cpu_speed.sh [option of the C++ compiler, such as -march=native]…
# CUDA_CPU_WORKERS is the number of host threads that either side has; default: all cores.
set -eu
cd "${0%/*}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for option; do
    set -- "$@" -Xcompiler "$option"
    shift
done
export CUDA_CPU_WORKERS="${CUDA_CPU_WORKERS-$(nproc)}"
export OMP_NUM_THREADS="$CUDA_CPU_WORKERS" POCL_MAX_PTHREAD_COUNT="$CUDA_CPU_WORKERS" POCL_CACHE_DIR="$folder"
# By default OpenMP's idle threads spin for milliseconds, which would take a core from the kernel that is timed next.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY-passive}"
printf '#include <CL/opencl.hpp>\nint main() { return !cl::Context(CL_DEVICE_TYPE_CPU)(); }\n' >"$folder/find.cpp"
if ../cucc "$folder/find.cpp" -lOpenCL -o "$folder/find" 2>"$folder/why" && "$folder/find"; then
    set -- "$@" -DHAVE_OPENCL -lOpenCL
else
    echo "not compared with OpenCL: the header CL/opencl.hpp, the library or a driver for the processor is missing"
fi
../cucc -O3 -Xcompiler -fopenmp cpu_speed.cu "$@" -o "$folder/cpu_speed"
"$folder/cpu_speed"
