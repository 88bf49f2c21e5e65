#!/bin/sh
# SPDX-License-Identifier: MIT
# Lists the tools, libraries and devices of this machine that the suite can use, and what is missing. The settings are those of make.
set -eu
cd "${0%/*}/.."

say() { printf '%-14s %s\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }
missing() { # label, what, Debian packages, their purpose
    # shellcheck disable=SC2086
    say "$1" "missing: $2: $(scripts/setup.sh --how $3)${4:+ ($4)}"
}
tool() { # label, the command that prints its version, Debian packages, their purpose
    if has "${2%% *}"; then say "$1" "$($2 | sed 's/ Copyright.*//;q')"; else missing "$1" "${2%% *}" "$3" "${4-}"; fi
}
# The first python3 with these packages, which may be another one than the distribution's
modules() { # label, names to import, Debian packages, their purpose
    for python in ${PYTHON-} python3 /usr/bin/python3; do
        if "$python" -c "import $2" 2>/dev/null; then say "$1" "$python has $2" && return; fi
    done
    missing "$@"
}

config=$(mktemp)
trap 'rm -f "$config"' EXIT
value() { sed -n "s/^$1 := //p" "$config"; }
wrong=$(scripts/configure.sh "$config")
say 'back end' "${wrong:-$(value CHOSEN) ($(value WHY))}"
tool compiler "${CC:-cc} --version" gcc
tool compiler "${CXX:-g++} --version" g++
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
display=${WAYLAND_DISPLAY:+Wayland without X11}
say display "$(if [ -n "${DISPLAY-}" ]; then echo "X11 ($DISPLAY)"; else echo "${display:-none}: pictures go to files"; fi)"
tool video 'ffmpeg -version' ffmpeg 'animations as GIF and as videos'
say library "found: $(sed -n 's/^FOUND += //p' "$config" | paste -sd ' ' -)"
sed -n 's/^OFF_[a-z_]* := //p' "$config" | while IFS= read -r line; do say library "missing: $line"; done
modules tests 'pytest, numpy, PIL' 'python3-pytest python3-numpy python3-pil' 'make test'
modules tests Xlib 'xvfb python3-xlib' 'tests of windows'
modules plots matplotlib python3-matplotlib 'plots of make bench'
tool format 'clang-format --version' clang-format 'make format'
tool format 'black --version' black 'make format'
