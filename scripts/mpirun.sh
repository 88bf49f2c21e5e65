#!/bin/sh
# SPDX-License-Identifier: MIT
# Starts a program as several processes (ranks) on this machine, also as root and with more processes than cores, which Open MPI
# otherwise refuses. MPICH's mpirun ignores these settings. Processes are not bound to cores, because they start threads.
# Without mpirun on PATH the program runs as one process.
#   mpirun.sh -np N PROGRAM [OPTION…]
set -eu
[ "${1-}" = -np ] && [ $# -ge 3 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 64; }

if ! command -v mpirun >/dev/null; then
    echo "mpirun.sh: no mpirun on PATH, so there is one process; $("${0%/*}/setup.sh" --how libopenmpi-dev) installs it" >&2
    shift 2
    exec "$@"
fi
# The names of Open MPI 4 (OMPI) and of Open MPI 5 (PRTE)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
# hwloc, which looks for the devices of the machine, asks no OpenCL driver: PoCL aborts where there is no /sys.
export HWLOC_COMPONENTS="${HWLOC_COMPONENTS--opencl}"
# Open MPI 4 refuses to start without ssh, which processes on this machine do not need.
command -v ssh >/dev/null || export OMPI_MCA_plm_rsh_agent=false
exec mpirun "$@"
