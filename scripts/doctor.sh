#!/bin/sh
# SPDX-License-Identifier: MIT
# Lists the tools, libraries and devices of this machine that the suite can use, and what is missing. The settings are those of make.
set -eu
cd "${0%/*}/.."

say() { printf '%-14s %s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }
missing() { echo "missing: $(scripts/setup.sh --how "$1")${2:+ ($2)}"; } # Debian packages, what they are for

config=$(mktemp)
trap 'rm -f "$config"' EXIT
value() { sed -n "s/^$1 := //p" "$config"; }
wrong=$(scripts/configure.sh "$config")
say 'back end' "${wrong:-$(value CHOSEN) ($(value WHY))}"
for compiler in "${CC:-cc}" "${CXX:-g++}"; do
    if has "${compiler%% *}"; then say compiler "$($compiler --version | sed -n 1p)"; else say compiler "missing: $compiler: $(scripts/setup.sh --how g++)"; fi
done
say cores "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo unknown)"
nvcc=$(command -v "${NVCC:-${CUDA_PATH:+$CUDA_PATH/bin/}nvcc}" || { [ -z "${CUDA_PATH-}" ] && command -v /usr/local/cuda/bin/nvcc; } || :)
if [ -n "$nvcc" ]; then say toolkit "$("$nvcc" --version | sed -n 's/.*release/CUDA/p') ($nvcc)"; else say toolkit "missing: no nvcc; set CUDA_PATH, or install NVIDIA's CUDA toolkit for the GPU back end"; fi
smi=$(command -v nvidia-smi || command -v /usr/lib/wsl/lib/nvidia-smi || :)
if [ -n "$smi" ] && "$smi" -L >/dev/null 2>&1; then
    say driver "$("$smi" --query-gpu=driver_version --format=csv,noheader | sed -n 1p)"
    "$smi" --query-gpu=index,name,compute_cap,memory.total --format=csv,noheader | while IFS= read -r gpu; do say GPU "$gpu"; done
else
    say driver "missing: $([ -n "$smi" ] && echo 'nvidia-smi finds no driver' || echo 'no nvidia-smi')"
    if ls /dev/nvidia[0-9]* >/dev/null 2>&1; then say GPU "found ($(echo /dev/nvidia[0-9]*)), but nvidia-smi does not describe it"; else say GPU none; fi
fi
! has compute-sanitizer || say sanitizer 'compute-sanitizer found'
if [ -n "${DISPLAY-}" ]; then say display "X11 ($DISPLAY)"; elif [ -n "${WAYLAND_DISPLAY-}" ]; then say display 'Wayland without X11: pictures go to files'; else say display 'none: pictures go to files'; fi
if has ffmpeg; then say video "$(ffmpeg -version | sed -n '1s/ Copyright.*//p')"; else say video "$(missing ffmpeg 'animations as GIF and as videos')"; fi
say library "found: $(sed -n 's/^FOUND += //p' "$config" | paste -sd ' ' -)"
sed -n 's/^OFF_[a-z_]* := //p' "$config" | while IFS= read -r line; do say library "missing: $line"; done

# The first python3 with these packages, which may be another one than the distribution's
while IFS='|' read -r what modules packages purpose; do
    found=
    for python in ${PYTHON-} python3 /usr/bin/python3; do
        if [ -z "$found" ] && "$python" -c "import $modules" 2>/dev/null; then found=$python; fi
    done
    if [ -n "$found" ]; then say "$what" "$found has $modules"; else say "$what" "$(missing "$packages" "$purpose")"; fi
done <<'END'
tests|pytest, numpy, PIL|python3-pytest python3-numpy python3-pil|make test
tests|Xlib|xvfb python3-xlib|tests of windows
plots|matplotlib|python3-matplotlib|plots of make bench
END
for tool in clang-format black; do
    if has $tool; then say format "$($tool --version | sed -n 1p)"; else say format "$(missing $tool 'make format')"; fi
done
