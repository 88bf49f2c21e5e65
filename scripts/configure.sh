#!/bin/sh
# SPDX-License-Identifier: MIT
# Chooses the back end and looks for the libraries of libraries.txt.
#   configure.sh FILE [FLAGS]  writes both to FILE as variables for make, if they or FLAGS have changed. Prints nothing, or one line
#                              that says which setting is wrong. Libraries that FILE has are not tested again; missing ones are
# Settings, in environment variables: BACKEND, NVCC, CUDA_PATH, SMS, SANITIZE, DEBUG, CC, CXX, MPICC; HAVE_PNG=0 switches libpng
# off, and so for the others.
set -eu
cd "${0%/*}/.."
: "${BACKEND:=auto}" "${NVCC=}" "${CUDA_PATH=}" "${SMS=}" "${SANITIZE=}" "${DEBUG:=0}" "${CC:=cc}" "${CXX:=g++}"

fail() { # what is wrong
    echo "$1"
    exit 0
}

one_of() { # word, list: whether the word is in the list
    case " $2 " in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

# ---- the back end ----

check_settings() {
    one_of "$BACKEND" 'auto gpu cpu' || fail "BACKEND=$BACKEND: must be auto, gpu or cpu"
    one_of "$DEBUG" '0 1' || fail "DEBUG=$DEBUG: must be 0 or 1"
    for sanitizer in $(echo "$SANITIZE" | tr , ' '); do
        one_of "$sanitizer" 'address undefined leak thread' || fail "SANITIZE=$SANITIZE: must be of address, undefined, leak or thread, with commas"
    done
    case $SANITIZE in
    *thread*address* | *thread*leak* | *address*thread* | *leak*thread*) fail "SANITIZE=$SANITIZE: thread goes with neither address nor leak" ;;
    esac
    [ "$BACKEND" != gpu ] || [ -z "$SANITIZE" ] || fail 'SANITIZE is for BACKEND=cpu, on a GPU use compute-sanitizer'
    [ -z "$SMS" ] || one_of "$BACKEND$SANITIZE" 'auto gpu' || fail 'SMS is for BACKEND=gpu, SANITIZE for BACKEND=cpu'
    for compiler in "$CC" "$CXX"; do
        command -v "${compiler%% *}" >/dev/null || fail "no compiler $compiler: $(how g++)"
    done
}

# Prints a line for each GPU: its compute capability without the point, and its name ("90 NVIDIA H200"); or "GPU" if there is one
# that nvidia-smi does not describe.
find_gpus() {
    smi=$(command -v nvidia-smi || command -v /usr/lib/wsl/lib/nvidia-smi || echo false)
    $smi --query-gpu=compute_cap,name --format=csv,noheader 2>/dev/null | sed -n 's/^\([0-9]*\)\.\([0-9]*\), */\1\2 /p' | grep . && return
    { $smi -L 2>/dev/null | grep -q '^GPU ' || ls /dev/nvidia[0-9]* >/dev/null 2>&1; } && echo GPU
}

# Sets `backend`, the reason `why`, `nvcc` and its `version`.
choose() {
    nvcc=${NVCC:-$(command -v "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" || :)} gpus='' version=''
    [ -n "$NVCC$CUDA_PATH" ] || nvcc=$(command -v nvcc || echo "$nvcc")
    none="no nvcc $([ -n "$CUDA_PATH" ] && echo "in CUDA_PATH=$CUDA_PATH" || echo 'on PATH and none in /usr/local/cuda')"
    if [ -n "$nvcc" ]; then
        version=$($nvcc --version 2>/dev/null) || fail "NVCC=$nvcc: cannot be run"
        case $version in cucc*) nvcc='' none="NVCC=$NVCC is for the CPU" ;; esac
        version=$(echo "$version" | sed -n 's/.*release \([0-9.]*\).*/\1/p')
    fi
    [ -z "$nvcc" ] || gpus=$(find_gpus || :)
    backend=cpu
    if [ "$BACKEND" != auto ]; then
        backend=$BACKEND why='asked for'
    elif [ -n "$SANITIZE" ]; then
        why='SANITIZE is for the CPU back end'
    elif [ -z "$nvcc" ]; then
        why=$none
    elif [ -n "$SMS" ]; then
        backend=gpu why='SMS asks for GPU code'
    elif [ -z "$gpus" ]; then
        why="nvcc $version is here, but no GPU"
    else
        backend=gpu why="nvcc $version and $(echo "$gpus" | sed -n '1{s/^GPU$/a GPU/;s/^[0-9]* //;p;}')"
    fi
    [ -n "$nvcc" ] || [ -z "$SMS" ] || fail "SMS=$SMS: $none; set CUDA_PATH"
    [ -n "$nvcc" ] || [ "$backend" = cpu ] || fail "BACKEND=gpu: $none; set CUDA_PATH"
    [ "$backend" = gpu ] || case $NVCC in *cucc) nvcc=$NVCC ;; *) nvcc=cucc/cucc ;; esac
}

# Sets `architectures` and `gencode`: those of SMS; else those of this machine's GPUs, if nvcc knows all of them; else one of each
# generation, with PTX for the newest one, which the driver compiles for later GPUs.
choose_architectures() {
    known=$($nvcc --list-gpu-code | sed -n 's/^sm_//p' | tr '\n' ' ')
    architectures=$SMS ptx='' gencode=''
    for sm in $SMS; do # 90a is 90 with features that no other architecture has
        one_of "${sm%[af]}" "$known" || fail "SMS=$SMS: nvcc $version has no $sm, only $known"
    done
    if [ -z "$SMS" ]; then
        architectures=$(echo "$gpus" | sed -n 's/^\([0-9][0-9]*\) .*/\1/p' | sort -un | tr '\n' ' ')
        for sm in $architectures; do one_of "$sm" "$known" || architectures=; done
    fi
    if [ -z "$architectures" ]; then
        for sm in 75 80 90 100 120; do
            if one_of "$sm" "$known"; then architectures="$architectures $sm" ptx=$sm; fi
        done
    fi
    for sm in $architectures; do gencode="$gencode -gencode=arch=compute_$sm,code=sm_$sm"; done
    [ -z "$ptx" ] || gencode="$gencode -gencode=arch=compute_$ptx,code=compute_$ptx"
    # shellcheck disable=SC2116,SC2086
    why="$why, sm $(echo $architectures)${ptx:+ and PTX}"
}

# ---- libraries ----

how() { # package: prints how to install it; names with blanks are not packages of the distribution
    case $1 in *' '*) echo "install $1" ;; *) scripts/setup.sh --how "$1" ;; esac
}

# The flags that mpicc adds to those of the C compiler, in the forms that nvcc accepts too. `mpicc -show` prints its command with
# Open MPI and with MPICH.
mpi_flags() { # the letters that they begin with
    ${MPICC:-mpicc} -show 2>/dev/null | tr ' ' '\n' | sed -n "/^-Wl/{s///; s/,/ -Xlinker /g; s/^ //}; /^-[$1]/p" | paste -sd ' ' -
}

probe() { # whether the headers of the row can be compiled and its flags linked
    dir=$(mktemp -d) status=0
    # CUDA's libraries, and those of one back end, are for nvcc or cucc: C++ for the host takes a quarter of the time of a .cu.
    case $name$only in cu* | *[cg]pu) file=$dir/probe.cpp command=$nvcc ;; *) file=$dir/probe.c command=$CC ;; esac
    # shellcheck disable=SC2086
    { printf '#include <%s>\n' $headers && echo 'int main(void) { return 0; }'; } >"$file"
    # shellcheck disable=SC2086
    $command $compile "$file" $link -o "$dir/a.out" >/dev/null 2>&1 || status=1
    rm -r "$dir"
    return $status
}

write() { # file of an earlier run, flags of the user: prints the variables
    tools="# $CC, $CXX, $nvcc $version"
    printf '%s\n' "$tools" "# ${2-}" "CHOSEN := $backend" "WHY := $why" "COMPILER := $nvcc" "GENCODE :=${gencode-}" \
        "RUNTIME :=${toolkit:+ ${toolkit#"$(pwd -P)/"}/machine}" "VARIANT := $backend$([ "$DEBUG" = 0 ] || echo -debug)$(echo "${SANITIZE:+-}$SANITIZE" | tr , -)" | sed 's/\$/$$/g'
    awk -F ' *[|] *' -v OFS='|' 'NF == 9 && !/^#/ { print $1, $2, $3, $4, $5, $9 }' scripts/libraries.txt |
        while IFS='|' read -r name only flags headers package what; do
            [ "${only:-$backend}" = "$backend" ] || continue
            have='' compile='' link=$flags why_not="switched off by HAVE_$(echo "$name" | tr a-z A-Z)=0"
            case $flags in
            mpicc) compile=$(mpi_flags ID) link=$(mpi_flags LlX) ;;
            -D*) have=${flags%% *} link=${flags#"$have"} && link=${link# } ;;
            esac
            eval "found=\${HAVE_$(echo "$name" | tr a-z A-Z)-}"
            if [ -z "$found" ]; then
                found=1
                { grep -qsFx "$tools" "$1" && grep -qsx "LIBS_$name :=.*" "$1"; } || probe || found=0 why_not=$(how "$package")
            fi
            if [ "$found" = 0 ]; then
                printf '%s\n' "OFF += $name" "OFF_$name := $what: $why_not"
            else
                printf '%s\n' "FOUND += $name" "FLAGS_$name := $compile" "LIBS_$name := $link"
                [ -z "$have" ] || printf '%s\n' "HAVE += $have" "LIBS += $link"
            fi
        done
}

check_settings
choose
[ "$backend" = cpu ] || choose_architectures
[ "$backend" = gpu ] || { version='' && toolkit=$($nvcc --toolkit); } || fail "$nvcc does not work"
mkdir -p "${1%/*}"
new=$1.$$
write "$@" >"$new"
if cmp -s "$new" "$1"; then rm "$new" && exit; fi
# Nothing is built again if only the reason for the choice is another one.
[ "$(grep -v '^WHY' "$new")" != "$(grep -sv '^WHY' "$1")" ] || touch -r "$1" "$new"
mv "$new" "$1"
