#!/bin/sh
# SPDX-License-Identifier: MIT
# Lists the tools, libraries and devices of this machine that the suite can use, and what is missing. `make doctor` sets the
# variables.
set -eu
cd "${0%/*}/.."

: "${CC:=cc}" "${CXX:=g++}" "${NVCC=}" "${NVCC_VERSION=}" "${CHOSEN=}" "${WHY=}" "${ARCHITECTURES=}"

say() { printf '%-14s %s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }
missing() { # Debian packages, what they are for
    # shellcheck disable=SC2086
    echo "missing: $(scripts/setup.sh --how $1)${2:+ ($2)}"
}

[ -z "$CHOSEN" ] || say 'back end' "$CHOSEN ($WHY)"
for compiler in "$CC" "$CXX"; do
    if has "${compiler%% *}"; then say compiler "$($compiler --version | sed -n 1p)"; else say compiler "missing: $compiler: $(scripts/setup.sh --how g++)"; fi
done
say cores "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo unknown)"
if [ -n "$NVCC" ]; then say toolkit "CUDA $NVCC_VERSION ($NVCC)"; else say toolkit "missing: no nvcc; set CUDA_PATH, or install NVIDIA's CUDA toolkit for the GPU back end"; fi

smi=$(command -v nvidia-smi || command -v /usr/lib/wsl/lib/nvidia-smi || :)
driver=$([ -z "$smi" ] || "$smi" --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed -n '1{/^[0-9]/p;}')
if [ -n "$driver" ]; then
    say driver "$driver"
    "$smi" --query-gpu=index,name,compute_cap,memory.total --format=csv,noheader | while IFS= read -r gpu; do say GPU "$gpu"; done
else
    say driver "missing: $([ -n "$smi" ] && echo 'nvidia-smi finds no driver' || echo 'no nvidia-smi')"
    if ls /dev/nvidia[0-9]* >/dev/null 2>&1; then say GPU "found ($(echo /dev/nvidia[0-9]*)), but nvidia-smi does not describe it"; else say GPU 'none'; fi
fi
if has compute-sanitizer; then say sanitizer 'compute-sanitizer found'; fi
[ -z "$ARCHITECTURES" ] || say architectures "sm $ARCHITECTURES"

if [ -n "${DISPLAY-}" ]; then say display "X11 ($DISPLAY)"; elif [ -n "${WAYLAND_DISPLAY-}" ]; then say display 'Wayland without X11: pictures go to files'; else say display 'none: pictures go to files'; fi

if has ffmpeg; then say video "$(ffmpeg -version | sed -n '1s/ Copyright.*//p')"; else say video "$(missing ffmpeg 'animations as GIF and as videos')"; fi
scripts/libs.sh doctor | while IFS= read -r line; do say library "$line"; done
for python in ${PYTHON-} python3 /usr/bin/python3; do
    if "$python" -c 'import pytest, numpy, PIL' 2>/dev/null; then say tests "$python has pytest, numpy and PIL"; tests=$python; break; fi
done
[ -n "${tests-}" ] || say tests "$(missing 'python3-pytest python3-numpy python3-pil')"
if has Xvfb && "${tests:-python3}" -c 'import Xlib' 2>/dev/null; then say tests 'Xvfb and Xlib for the tests of windows'; else say tests "$(missing 'xvfb python3-xlib' 'tests of windows')"; fi
for python in ${PYTHON-} python3 /usr/bin/python3; do
    if "$python" -c 'import matplotlib' 2>/dev/null; then say plots "$python has matplotlib"; plots=$python; break; fi
done
[ -n "${plots-}" ] || say plots "$(missing python3-matplotlib 'plots of make bench')"
for tool in clang-format black; do
    if has $tool; then say format "$($tool --version | sed -n 1p)"; else say format "$(missing $tool 'make format')"; fi
done
