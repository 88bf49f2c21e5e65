#!/bin/sh
# SPDX-License-Identifier: MIT
# Profiles a program on a GPU (make profile-chapterNN/name): nsys for when copies and kernels run, ncu for the counters of each
# kernel. Either is enough.
#   profile.sh PROGRAM [OPTION…]    the options are the program's
# BIN and BUILD are the folders of the Makefile. nsys keeps its report in BUILD/profile, for its window.
set -eu
cd "${0%/*}/.."

program=$1 name=${1##*/} BIN=$(cd "${BIN:-bin}" && pwd)
shift
mkdir -p "${BUILD:=build}/profile/${program%/*}"
cd "$BUILD/profile/${program%/*}"
unset DISPLAY WAYLAND_DISPLAY

# Time; sectors for each access of a warp to global memory, reads and writes; bank conflicts; instructions, also of local and
# constant memory; branches, and those at which lanes diverge; blocks. docs/tools.md explains them.
global=l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_
conflicts=l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_
metrics=gpu__time_duration.sum,${global}ld.ratio,${global}st.ratio,${conflicts}ld.sum,${conflicts}st.sum,smsp__inst_executed.sum
metrics=$metrics,smsp__inst_executed_op_local_ld.sum,smsp__inst_executed_op_local_st.sum,idc__requests.sum
metrics=$metrics,smsp__inst_executed_op_branch.sum,smsp__sass_branch_targets_threads_divergent.sum,sm__ctas_launched.sum

command -v nsys >/dev/null || command -v ncu >/dev/null ||
    { echo 'neither nsys nor ncu is on PATH: they are part of the CUDA toolkit' >&2; exit 1; }
if command -v nsys >/dev/null; then
    echo "== nsys: $program $*"
    nsys profile --force-overwrite true --trace cuda,nvtx --output "$name" "$BIN/$program" "$@" >"$name.txt" 2>&1 || { cat "$name.txt" >&2; exit 1; }
    nsys stats --force-export true --quiet --report cuda_gpu_kern_sum --report cuda_gpu_mem_time_sum --report nvtx_gpu_proj_sum "$name.nsys-rep"
fi
if command -v ncu >/dev/null; then
    echo "== ncu: the first launch of each kernel of $program $*"
    ncu --kernel-id :::1 --metrics "$metrics" "$BIN/$program" "$@"
fi
