#!/bin/sh
# SPDX-License-Identifier: MIT
# Lists the back end, compilers, devices and libraries of this machine, and what setup.sh would install. The settings are those of make.
set -eu
cd "${0%/*}/.."

say() { printf '%-14s %s\n' "$1" "$2"; }
config=$(mktemp)
trap 'rm -f "$config"' EXIT
value() { sed -n "s/^$1 := //p" "$config"; }
wrong=$(scripts/configure.sh "$config")
say 'back end' "${wrong:-$(value CHOSEN) ($(value WHY))}"
for compiler in "${CC:-cc}" "${CXX:-g++}"; do
    say compiler "$($compiler --version 2>/dev/null | sed 's/ Copyright.*//;q' | grep . || echo "missing: $compiler")"
done
say cores "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo unknown)"
smi=$(command -v nvidia-smi || command -v /usr/lib/wsl/lib/nvidia-smi || echo false)
gpus=$($smi --query-gpu=index,name,compute_cap,memory.total,driver_version --format=csv,noheader 2>/dev/null || :)
echo "${gpus:-none that nvidia-smi describes}" | while IFS= read -r gpu; do say GPU "$gpu"; done
! command -v compute-sanitizer >/dev/null || say sanitizer 'compute-sanitizer found'
display=${WAYLAND_DISPLAY:+Wayland without X11}
say display "$(if [ -n "${DISPLAY-}" ]; then echo "X11 ($DISPLAY)"; else echo "${display:-none}: pictures go to files"; fi)"
say library "found: $(sed -n 's/^FOUND += //p' "$config" | paste -sd ' ' -)"
sed -n 's/^OFF_[a-z_]* := //p' "$config" | while IFS= read -r line; do say library "missing: $line"; done
scripts/setup.sh --missing bench docs site gallery format test | while IFS= read -r line; do say package "missing: $line"; done
