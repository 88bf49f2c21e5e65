#!/bin/bash
# SPDX-License-Identifier: MIT
# Tests the README's two commands on new minimal Debian and Ubuntu systems, as a reader would run them: from a clone of the
# committed files, with only git, make and a compiler installed. The exit status is 1 when anything fails.
#   systems.sh FOLDER [WORD…]   FOLDER (about 10 GB) keeps the base systems, the downloaded packages and the logs. Words
#                               select what is tested; without a word of a kind, all of that kind:
#     debian12 debian13         the system
#     ubuntu2404                Ubuntu 24.04, only when asked for; needs ubuntu-archive-keyring.gpg of the package ubuntu-keyring
#     g++ clang++               the compiler
#     root user                 the user who runs make; "user" has sudo
#     run test                  make setup run, make setup test; both run on the same system in this order
#     image                     the steps of the Dockerfile, in the clone, then make run; only when asked for, by root with g++
#   mirror=URL                  the mirror; by default that of debootstrap, and archive.ubuntu.com
# Needs root, debootstrap and the Debian archive keyring.
set -euo pipefail

fail() { # status, reason
    echo "systems.sh: $2" >&2
    exit "$1"
}

folder='' systems='' compilers='' users='' commands='' mirror=''
for word; do
    case $word in
    debian12 | debian13 | ubuntu2404) systems+=" $word" ;;
    g++ | clang++) compilers+=" $word" ;;
    root | user) users+=" $word" ;;
    run | test | image) commands+=" $word" ;;
    mirror=?*) mirror=${word#mirror=} ;;
    *)
        [ -z "$folder" ] || fail 64 "$word: must be one of debian12 debian13 ubuntu2404 g++ clang++ root user run test image mirror=URL"
        [ -d "$word" ] || fail 64 "$word: is no folder; the first argument must be one"
        folder=$(cd "$word" && pwd)
        ;;
    esac
done
[ "$commands" != ' image' ] || compilers=' g++' users=' root'
[ -n "$folder" ] || fail 64 'name a folder for the systems'
[ "$(id -u)" -eq 0 ] || fail 1 'needs root'
for tool in debootstrap unshare chroot git; do
    command -v "$tool" >/dev/null || fail 1 "needs $tool"
done
keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
case $systems in *ubuntu*) [ -f "$keyring" ] || fail 1 "needs $keyring, from Ubuntu's package ubuntu-keyring" ;; esac
root=$(cd "${0%/*}/.." && pwd)
trial=$folder/trial.$$ child=''

# Everything is mounted in a separate mount namespace, which ends with its last process. So no directory of this machine
# is mounted in the folder that is removed here.
tidy() {
    if [ -n "$child" ]; then
        kill -KILL "$child" 2>/dev/null || :
        wait "$child" 2>/dev/null || :
    fi
    rm -rf "$trial"
}
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Runs a command in the trial system, in the background, because the shell runs a trap only after a foreground command.
inside() { # user, command
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -euc '
        trial=$1 user=$2 archives=$3
        shift 3
        mount --make-rprivate /
        mount -t proc proc "$trial/proc"
        mount --bind /sys "$trial/sys" # PoCL reads the topology of the processors there
        mount --bind "$archives" "$trial/var/cache/apt/archives"
        mount -t tmpfs -o mode=755 tmpfs "$trial/dev"
        for device in null zero full random urandom tty; do
            : >"$trial/dev/$device"
            mount --bind "/dev/$device" "$trial/dev/$device"
        done
        mkdir "$trial/dev/pts" "$trial/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=666 devpts "$trial/dev/pts"
        mount -t tmpfs -o mode=1777 tmpfs "$trial/dev/shm"
        ln -s pts/ptmx "$trial/dev/ptmx"
        ln -s /proc/self/fd "$trial/dev/fd"
        for number in 0 1 2; do ln -s "/proc/self/fd/$number" "$trial/dev/std$(echo in out err | cut -d " " -f $((number + 1)))"; done
        [ "$user" = root ] && home=/root || home=/home/$user
        exec env -i ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} HOME="$home" USER="$user" TERM=dumb \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            chroot --userspec="$user:$user" "$trial" "$@"' sh "$trial" "$1" "$archives" "${@:2}" </dev/null &
    child=$!
    local status=0
    wait "$child" || status=$?
    child=''
    return "$status"
}

# Makes the trial system. `set -e` is ignored in a function whose status is tested, hence the && between the steps.
prepare() { # system, compiler, user
    local suite script='' url=$mirror options='' base packages="git make ${2/clang++/clang}"
    case $1 in
    debian12) suite=bookworm ;;
    debian13) suite=trixie ;;
    ubuntu2404)
        # The debootstrap of Debian 12 has no script for this suite; all suites of Ubuntu have the same one.
        suite=noble script=/usr/share/debootstrap/scripts/gutsy url=${mirror:-http://archive.ubuntu.com/ubuntu}
        options="--components=main,universe --keyring=$keyring"
        ;;
    esac
    base=$folder/$suite-base archives=$folder/$suite-packages
    mkdir -p "$archives/partial"
    if [ ! -d "$base" ]; then
        rm -rf "$base.new"
        # shellcheck disable=SC2086
        unshare --mount debootstrap --variant=minbase $options "$suite" "$base.new" $url $script && mv "$base.new" "$base" || return 1
    fi
    rm -rf "$trial"
    cp -a --reflink=auto "$base" "$trial" && cp -L /etc/resolv.conf "$trial/etc/resolv.conf" || return 1
    # As an installer writes it. Without its own name a machine asks the name server, and MPI waits 5 s at each start.
    echo "127.0.0.1 localhost $(uname -n)" >"$trial/etc/hosts"
    # The system is deleted after minutes, so dpkg need not wait until its files are on the disk.
    mkdir -p "$trial/etc/dpkg/dpkg.cfg.d" && echo force-unsafe-io >"$trial/etc/dpkg/dpkg.cfg.d/unsafe-io"
    # Copies the network settings of this machine's apt.
    if command -v apt-config >/dev/null; then
        apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-Date|Check-Valid-Until) "..*";$' >"$trial/etc/apt/apt.conf.d/99network" || :
    fi
    [ "$3" = root ] || packages+=' sudo'
    # shellcheck disable=SC2016,SC2086
    inside root sh -ec 'apt-get update; DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"' sh $packages &&
        git clone -q --no-hardlinks "file://$root" "$trial/srv/clone" &&
        inside root sh -ec 'if [ "$1" != root ]; then
            useradd -m "$1"
            echo "$1 ALL=(ALL) NOPASSWD: ALL" >"/etc/sudoers.d/$1"
        fi
        chown -R "$1:$1" /srv/clone' sh "$3"
}

table="$folder/logs/table"
mkdir -p "$folder/logs"
: >"$table"
passed=0 failed=0
row() { # system, compiler, user, command, result, seconds, summary
    printf '%-10s  %-7s  %-4s  %-16s  %-6s  %5s s  %s\n' "$1" "$2" "$3" "$([ "$4" = image ] && echo Dockerfile || echo "make setup $4")" "$5" "$6" "$7" | tee -a "$table"
    if [ "$5" = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# The RUN steps of the Dockerfile as lines of a shell, and what the image runs then
steps() {
    sed -e :a -e '/\\$/{N;s/\\\n//;ba' -e '}' "$root/Dockerfile" | sed -n 's/^RUN \(.*\)/{ \1; } || exit/p'
    echo 'make run'
}

# The last line with counts, from `make run` or pytest
summary() { grep -aE '^[0-9]+ ok, |^(=+ )?[0-9]+ (passed|failed|error|skipped)' "$1" | tail -n 1 || :; }
warnings() { grep -aE '^[^ ]+: warning: ' "$1" | grep -cv '^update-alternatives: ' || :; } # without those of packages

for system in ${systems:-debian12 debian13}; do
    for compiler in ${compilers:-g++ clang++}; do
        for user in ${users:-root user}; do
            name=$system-$compiler-$user
            echo "== $name: logs in $folder/logs"
            ready=yes start=$SECONDS
            prepare "$system" "$compiler" "$user" >"$folder/logs/$name-prepare.log" 2>&1 || ready=
            for command in ${commands:-run test}; do
                [ "$command" != image ] || [ "$compiler-$user" = g++-root ] || continue
                if [ -z "$ready" ]; then
                    row "$system" "$compiler" "$user" "$command" FAILED $((SECONDS - start)) "the system could not be made: $name-prepare.log"
                    continue
                fi
                log=$folder/logs/$name-$command.log start=$SECONDS status=0
                set -- make setup "$command"
                [ "$command" != image ] || set -- env DEBIAN="${system#debian}" CUDA= sh -xc "$(steps)"
                [ "$compiler" = g++ ] || set -- make CC=clang CXX=clang++ setup "$command"
                # shellcheck disable=SC2016
                inside "$user" sh -c 'cd /srv/clone && exec "$@"' sh "$@" >"$log" 2>&1 || status=$?
                says=$(summary "$log")
                count=$(warnings "$log")
                if [ "$status" -ne 0 ]; then
                    row "$system" "$compiler" "$user" "$command" FAILED $((SECONDS - start)) "status $status${says:+: $says}"
                elif [ "$count" -ne 0 ]; then
                    row "$system" "$compiler" "$user" "$command" FAILED $((SECONDS - start)) "$count warnings: $says"
                else
                    row "$system" "$compiler" "$user" "$command" ok $((SECONDS - start)) "$says"
                fi
            done
        done
    done
done
echo
cat "$table"
echo "$passed ok, $failed failed"
[ "$failed" -eq 0 ]
