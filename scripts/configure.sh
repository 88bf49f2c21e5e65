#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the goals and settings of make, chooses the back end, and prints the results as variables for make.
#   configure.sh GOAL…
# The settings of make are in environment variables of the same names: FILE, BACKEND, SMS, CUDA_PATH, NVCC, DEBUG, SANITIZE,
# CHAPTER, PROGRAM, DIR, TOPIC, SIZES, COMPARE, BIN. TARGETS are the goals that are neither a chapter nor a program.
#
#   ERROR         an error message of one line; then no other variable is printed
#   FOLDER        the chapter that CHAPTER names
#   LADDERS       the ladders that `make bench` runs
#   FIGURES       the programs of bench/then.ini, if `make then-and-now` or a whole `make bench` runs them
#   BUILD_GOALS   the goals of the build
# If there is something to build, and for `make doctor`, also:
#   CHOSEN, WHY   the back end, and the reason
#   NVCC, NVCC_VERSION, ARCHITECTURES, GENCODE
set -eu
cd "${0%/*}/.."

: "${FILE=}" "${BACKEND:=auto}" "${SMS=}" "${CUDA_PATH=}" "${NVCC=}" "${DEBUG:=0}" "${SANITIZE=}" "${CHAPTER=}" "${PROGRAM=}" "${DIR=}" "${TOPIC=}" "${BIN:=bin}" "${TARGETS=}"

# Characters with a meaning in a makefile are escaped.
set_variable() { # name, value
    printf '%s := %s\n' "$1" "$2" | sed 's/\$/$$/g; s/#/\\#/g'
}

fail() { # what is wrong
    set_variable ERROR "$1"
    exit 0
}

# one_of WORD WORD…: whether the first word is among the others
one_of() {
    wanted=$1
    shift
    for word; do
        [ "$word" != "$wanted" ] || return 0
    done
    return 1
}

asked_for() { # any of these goals
    for wanted_goal; do
        # shellcheck disable=SC2086
        ! one_of "$wanted_goal" $goals || return 0
    done
    return 1
}

# ---- goals: targets, chapters, programs ----

goals=$*
chapters=$(echo chapter[0-9][0-9] appendix_a)
programs=$(find chapter[0-9][0-9] appendix_a -maxdepth 1 -name '*.cu' 2>/dev/null | sed 's/\.cu$//' | sort)

# The chapters that a short name such as 4, chapter4 or a can mean
chapters_like() {
    for chapter in "chapter$1" "chapter0$1" "chapter0${1#chapter}" "chapter${1#chapter_}" "appendix_$1" "appendix_${1#appendix}" "$1"; do
        # shellcheck disable=SC2086
        if one_of "$chapter" $chapters; then echo "$chapter" && return; fi
    done
}

# A suggestion for an unknown goal: the program without .cu or my/, the programs of that name, a chapter, or the programs whose name
# contains it
meant() {
    name=${1%.cu}
    name=${name#my/}
    pattern=$(printf %s "${name##*/}" | sed 's/[^a-zA-Z0-9_]/./g')
    like=$(echo "$programs" | grep -xF "$name" || echo "$programs" | grep -xE "[^/]*/$pattern" || chapters_like "$1")
    [ -n "$like" ] || [ ${#pattern} -lt 3 ] || like=$(echo "$programs" | grep -E "/.*$pattern" | head -n 6)
    # shellcheck disable=SC2086
    [ -z "$like" ] || echo $like | sed 's/ / or /g; s/^/did you mean /; s/$/?/'
}

check_goals() {
    for goal; do
        case $goal in
        tests/* | cpu/bench/* | "$BIN"/*) continue ;;
        my/*)
            [ ! -f "$goal.cu" ] || continue
            # shellcheck disable=SC2086
            ! one_of "${goal#my/}" $programs || fail "there is no $goal.cu: make exercise ${goal#my/} writes it"
            fail "there is no $goal.cu"
            ;;
        profile-* | trace-*)
            program=${goal#profile-}
            program=${program#trace-}
            # shellcheck disable=SC2086
            ! one_of "$program" $programs || continue
            case $goal in trace-my/*) [ ! -f "$program.cu" ] || continue ;; esac
            hint=$(meant "$program")
            fail "$goal: there is no program $program: ${hint:-make help shows an example}"
            ;;
        esac
        # shellcheck disable=SC2086
        ! one_of "$goal" $TARGETS $chapters $programs || continue
        hint=$(meant "$goal")
        ! asked_for exercise || fail "there is no program $goal: ${hint:-make exercises lists the exercises}"
        fail "there is no target $goal: ${hint:-make help lists them}"
    done
}

# ---- the back end ----

check_settings() {
    one_of "$BACKEND" auto gpu cpu || fail "BACKEND=$BACKEND: must be auto, gpu or cpu"
    one_of "$DEBUG" 0 1 || fail "DEBUG=$DEBUG: must be 0 or 1"
    sanitizers=$(echo "$SANITIZE" | tr , ' ')
    for sanitizer in $sanitizers; do
        one_of "$sanitizer" address undefined leak thread || fail "SANITIZE=$SANITIZE: must be of address, undefined, leak or thread, with commas"
    done
    case " $sanitizers " in
    *' thread '*) case " $sanitizers " in *' address '* | *' leak '*) fail "SANITIZE=$SANITIZE: thread goes with neither address nor leak" ;; esac ;;
    esac
    if [ "$BACKEND" = gpu ]; then
        [ -z "$SANITIZE" ] || fail 'SANITIZE is for BACKEND=cpu, on a GPU use compute-sanitizer'
        ! asked_for gallery || fail 'the gallery is for BACKEND=cpu, which draws the same on every machine'
        ! asked_for faults || fail 'make faults is for BACKEND=cpu, whose calls can be made to fail'
        ! asked_for locks || fail 'make locks is for BACKEND=cpu, whose schedule can be chosen'
        ! asked_for command-lines || fail 'make command-lines is for BACKEND=cpu, with the sanitizers of the compiler'
    fi
    [ -z "$SMS" ] || [ "$BACKEND" != cpu ] || fail 'SMS is for BACKEND=gpu'
    [ -z "$SMS" ] || [ -z "$SANITIZE" ] || fail 'SMS is for BACKEND=gpu and SANITIZE for BACKEND=cpu'
}

find_nvcc() {
    if [ -n "$NVCC" ]; then
        # shellcheck disable=SC2086
        command -v $NVCC
    elif [ -n "$CUDA_PATH" ]; then
        command -v "$CUDA_PATH/bin/nvcc"
    else
        command -v nvcc || command -v /usr/local/cuda/bin/nvcc
    fi
}

# Prints one line for each GPU, its compute capability without the point and its name: "90 NVIDIA H200". Prints only "GPU" if
# there is a GPU that nvidia-smi does not describe.
find_gpus() {
    smi=$(command -v nvidia-smi || command -v /usr/lib/wsl/lib/nvidia-smi || echo false)
    $smi --query-gpu=compute_cap,name --format=csv,noheader 2>/dev/null | sed -n 's/^\([0-9]*\)\.\([0-9]*\), */\1\2 /p' | grep . && return
    { $smi -L 2>/dev/null | grep -q '^GPU ' || ls /dev/nvidia[0-9]* >/dev/null 2>&1; } && echo GPU
}

choose() {
    chosen=cpu
    if [ "$BACKEND" != auto ]; then
        chosen=$BACKEND why='asked for'
    elif [ -n "$SANITIZE" ]; then
        why='SANITIZE is for the CPU back end'
    elif asked_for gallery; then
        why='the gallery has to come out the same on every machine'
    elif asked_for faults; then
        why='its calls can be made to fail'
    elif asked_for locks; then
        why='its schedule can be chosen'
    elif [ -z "$nvcc" ]; then
        why=$no_nvcc
    elif [ -n "$SMS" ]; then
        chosen=gpu why='SMS asks for GPU code'
    elif [ -z "$gpus" ]; then
        why="nvcc $version is here, but no GPU"
    elif [ "$gpus" = GPU ]; then
        chosen=gpu why="nvcc $version and a GPU"
    else
        chosen=gpu why="nvcc $version and $(echo "$gpus" | sed -n '1s/^[0-9]* //p')"
    fi
    if [ -z "$nvcc" ]; then
        [ -z "$SMS" ] || fail "SMS=$SMS: $no_nvcc; set CUDA_PATH"
        [ "$chosen" = cpu ] || fail "BACKEND=gpu: $no_nvcc; set CUDA_PATH"
    fi
}

# The architectures to compile for: those of SMS; without SMS those of this machine's GPUs, if nvcc supports all of them;
# otherwise one of each generation, with PTX for the newest one, which the driver compiles for later GPUs.
choose_architectures() {
    known=$($nvcc --list-gpu-code | sed -n 's/^sm_//p')
    capabilities=$(echo "$gpus" | sed -n 's/^\([0-9][0-9]*\) .*/\1/p' | sort -un)
    architectures=$SMS ptx=
    for sm in $SMS; do
        plain=${sm%[af]} # 90a is 90 with features that no other architecture has
        # shellcheck disable=SC2086,SC2116
        one_of "$plain" $known || fail "SMS=$SMS: nvcc $version has no $sm, only $(echo $known)"
    done
    if [ -z "$SMS" ]; then
        # shellcheck disable=SC2116,SC2086
        architectures=$(echo $capabilities)
        for sm in $capabilities; do
            # shellcheck disable=SC2086
            one_of "$sm" $known || architectures=
        done
    fi
    if [ -z "$architectures" ]; then
        for sm in 75 80 90 100 120; do
            # shellcheck disable=SC2086
            if one_of "$sm" $known; then architectures="$architectures${architectures:+ }$sm" ptx=$sm; fi
        done
    fi
    gencode=
    for sm in $architectures; do gencode="$gencode -gencode=arch=compute_$sm,code=sm_$sm"; done
    [ -z "$ptx" ] || gencode="$gencode -gencode=arch=compute_$ptx,code=compute_$ptx"
}

# ---- all of it ----

check_goals "$@"

folder=
if [ -n "$CHAPTER" ]; then
    folder=$(chapters_like "$CHAPTER")
    # shellcheck disable=SC2086
    [ -n "$folder" ] || fail "CHAPTER=$CHAPTER: must be one of $(echo $chapters | sed 's/chapter//g')"
fi

if asked_for old; then
    [ -n "$FILE" ] || fail 'make old needs the program: make old FILE=/path/to/listing.cu'
    [ -f "$FILE" ] || fail "FILE=$FILE: there is no such file"
elif [ -n "$FILE" ]; then
    case " $goals" in *' trace-'*) ;; *) fail 'FILE is for make old and make trace-…' ;; esac
fi

case " $goals" in
*' trace-'*)
    [ "$BACKEND" != gpu ] || fail 'make trace-… is for the CPU back end; on a GPU: make profile-…'
    [ -z "$SANITIZE" ] || fail 'make trace-… has instrumentation of its own, without SANITIZE'
    ;;
esac

if asked_for check; then
    [ "$BACKEND" != gpu ] || fail 'make check is for the CPU back end; on a GPU: compute-sanitizer --tool racecheck PROGRAM'
    [ -z "$SANITIZE" ] || fail 'make check has instrumentation of its own, without SANITIZE'
fi
if asked_for check sanitize faults mutate signals command-lines exercise; then
    # shellcheck disable=SC2086
    [ -z "$PROGRAM" ] || { asked_for check && [ -f "my/${PROGRAM#my/}.cu" ] && [ "$PROGRAM" != "${PROGRAM#my/}" ]; } || one_of "$PROGRAM" $programs || { hint=$(meant "$PROGRAM"); fail "PROGRAM=$PROGRAM: there is no such program${hint:+, $hint}"; }
elif [ -n "$PROGRAM" ]; then
    fail 'PROGRAM is for make check, make sanitize, make faults, make mutate, make signals, make command-lines and make exercise'
fi

if asked_for exercise && [ "$PROGRAM$(printf '%s\n' "$goals" | tr ' ' '\n' | grep -cE '^(chapter|appendix)')" = 0 ]; then
    case " $goals" in *" my/"*) fail 'make exercise takes the name of the program, without my/' ;; esac
    fail 'make exercise needs a program: make exercises lists all'
fi
if asked_for grade; then
    [ -n "$DIR" ] || fail 'make grade needs the folder of the solutions: make grade DIR=/path/to/folder'
    [ -d "$DIR" ] || fail "DIR=$DIR: there is no such folder"
fi

ladders=
if asked_for bench then-and-now; then
    if [ -n "$SANITIZE" ] || [ "$DEBUG" != 0 ]; then fail 'the bench measures what is optimised, without SANITIZE and DEBUG'; fi
fi
if asked_for bench; then
    # The programs with a Bench: in their header
    # shellcheck disable=SC2086
    ladders=$(scripts/programs.sh $folder | awk -F '\t' '$10 != "" { print $1 }')
    [ -n "$ladders" ] || [ -z "$folder" ] || fail "CHAPTER=$CHAPTER: has no ladder"
    topics=$(echo "$ladders" | sed 's,.*/,,; s/_ladder$//' | sort -u)
    chosen_ladders=
    for topic in $TOPIC; do
        # shellcheck disable=SC2086,SC2116
        one_of "$topic" $topics || fail "TOPIC=$topic: must be of $(echo $topics)"
        chosen_ladders="$chosen_ladders $(echo "$ladders" | grep -E "/$topic(_ladder)?\$")"
    done
    [ -z "$TOPIC" ] || ladders=$chosen_ladders
fi

figures=
if asked_for then-and-now || { asked_for bench && [ -z "$folder$TOPIC${SIZES-}${COMPARE-}" ]; }; then
    figures=$(sed -nE 's/^(run|ladder) = ([^ ]*).*/\2/p' bench/then.ini | sort -u)
fi

to_build='' profile=''
for goal in ${goals:-all}; do
    case $goal in
    chapter* | appendix_*) asked_for exercise || to_build="$to_build $goal" ;;
    all | tests | old | tests/* | cpu/bench/* | compile_commands.json | my/* | "$BIN"/*) to_build="$to_build $goal" ;;
    run) to_build="$to_build ${folder:-all}" ;;
    test) to_build="$to_build all tests" ;;
    gallery | faults | signals) to_build="$to_build all" ;;
    locks) to_build="$to_build appendix_a chapter09" ;;
    bench | then-and-now) to_build="$to_build measured" ;;
    profile-*) to_build="$to_build ${goal#profile-}" profile=$goal ;;
    esac
done

variables() {
    set_variable FOLDER "$folder"
    # shellcheck disable=SC2086,SC2116
    set_variable LADDERS "$(echo $ladders)"
    # shellcheck disable=SC2086,SC2116
    set_variable FIGURES "$(echo $figures)"
    # shellcheck disable=SC2086
    set_variable BUILD_GOALS "$(printf '%s\n' $to_build | sort -u | tr '\n' ' ')"
}

if [ -z "$to_build" ] && ! asked_for doctor sanitize exercises progress grade; then
    variables
    exit
fi

check_settings
nvcc=$(find_nvcc || :) version=
no_nvcc="no nvcc $([ -n "$CUDA_PATH" ] && echo "in CUDA_PATH=$CUDA_PATH" || echo 'on PATH and none in /usr/local/cuda')"
[ -z "$nvcc" ] || version=$($nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
gpus=$(find_gpus || :)
choose
[ -z "$profile" ] || [ "$chosen" = gpu ] ||
    fail "make $profile needs a GPU ($why): nsys and ncu measure GPUs; on the CPU try perf record $BIN/${profile#profile-}"
architectures='' ptx='' gencode=''
[ -z "$nvcc" ] || choose_architectures

variables
set_variable CHOSEN "$chosen"
set_variable WHY "$why"
set_variable NVCC "$nvcc"
set_variable NVCC_VERSION "$version"
set_variable ARCHITECTURES "$architectures${ptx:+ and PTX}"
set_variable GENCODE "$gencode"
