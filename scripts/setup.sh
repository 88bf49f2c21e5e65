#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the packages of libraries.txt that this machine lacks. When nothing is missing, it changes nothing and does not use the
# network. For site and test it also fetches the packages of web/playground, as package-lock.json has them. For a package that cannot be
# installed it says what will be missing, and continues; only a missing compiler is an error.
#   setup.sh [GOAL…]          the packages for building and running, and for these goals of make
#   setup.sh --missing GOAL…  only lists those that are missing, each with its purpose
#   setup.sh --how PACKAGE…   prints the command that installs these packages, given by their Debian names
#   setup.sh --doctor         lists the back end, compilers, devices and libraries of this machine, and the packages that are missing
set -eu

# Debian's name | Fedora's | Arch's | openSUSE's | goals of make that need it, or all | its purposes
packages() {
    awk -F ' *[|] *' '
        /^#/ { next }
        NF == 9 { sub(/ [(].*/, "", $9); $0 = $5 "|" $6 "|" $7 "|" $8 "|all|" $9 }
        NF != 6 || $1 ~ / / { next }
        $1 in what { what[$1] = what[$1] ", " $6; next }
        { row[++count] = $1; names[$1] = $1 "|" $2 "|" $3 "|" $4 "|" $5; what[$1] = $6 }
        END { for (i = 1; i <= count; i++) print names[row[i]] "|" what[row[i]] }' "${0%/*}/libraries.txt"
}

field() { # number, Debian package
    packages | awk -F '|' -v field="$1" -v package="$2" '$1 == package { print $field }'
}

installed() { # package, by its name on this system
    case $system in
    Debian) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
    Arch) pacman -T "$1" ;;
    *) rpm -q --whatprovides "$1" ;;
    esac >/dev/null 2>&1
}

# The system | the field of its names in the table | its package manager | the package that contains that | its options | the command
# that installs | and the same for people. The manager of the system is the one that lists itself as installed.
while IFS='|' read -r system column tool self quiet install by_hand; do
    if command -v "$tool" >/dev/null && installed "$self"; then break; fi
done <<'END'
Debian|1|apt-get|dpkg|-qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=1 -o Acquire::http::Timeout=20|install -y --no-install-recommends|apt install
Fedora|2|dnf|rpm||install -y --setopt=install_weak_deps=False|dnf install
openSUSE|4|zypper|rpm|--non-interactive|install --no-recommends|zypper install
Arch|3|pacman|pacman||-S --needed --noconfirm|pacman -S --needed
END

# The names on this system, without duplicates: elsewhere one package may contain several of Debian's, and some have no package.
names() { # Debian packages
    for package; do
        name=$(field "${column:-1}" "$package")
        [ "$name" = - ] || echo "${name:-$package}"
    done | awk '!seen[$0]++ { printf "%s%s", blank, $0; blank = " " }'
}

how() { # Debian packages: prints the command that installs them
    found=$(names "$@")
    case $system,$found in
    ,*) echo "install $* (Debian's names)" ;;
    *,) echo "$system has no package for it, Debian has $*" ;;
    *) echo "$by_hand $found" ;;
    esac
}

# The settings are those of make.
doctor() {
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
}

case ${1-} in
--how) shift && how "$@" && exit ;;
--doctor) doctor && exit ;;
esac

# Whether web/playground lacks its packages, or has those of another package-lock.json.
unpacked() {
    case "|$goals|" in *'|site|'* | *'|test|'*) ! cmp -s "$playground/package-lock.json" "$playground/node_modules/lock" ;; *) false ;; esac
}

# Only the compilers are required; without other packages parts of the suite are switched off.
finish() { # what to say, if anything
    [ $# = 0 ] || echo "setup: $1"
    ! unpacked || if command -v npm >/dev/null; then
        echo "setup: npm ci, in $playground"
        # Without --ignore-scripts each package could run a program here.
        (cd "$playground" && npm ci --ignore-scripts --no-audit --no-fund && cp package-lock.json node_modules/lock) ||
            echo 'setup: could not fetch the packages of the playground' >&2
    fi
    for compiler in "${CC:-cc}" "${CXX:-g++}" "${HOSTCC:-cc}"; do
        command -v "${compiler%% *}" >/dev/null || { echo "setup: there is no $compiler, and nothing builds without it" >&2; exit 1; }
    done
    exit 0
}

# Whether another program serves the same purpose. On Ubuntu, Chromium is a snap, which apt does not install.
replaced() { # Debian package
    case $1 in
    npm) command -v npm ;;
    chromium) command -v google-chrome || command -v chromium-browser || grep -qsx ID=ubuntu "${OS_RELEASE:-/etc/os-release}" ;;
    ffmpeg) command -v ffmpeg ;;
    *) return 1 ;;
    esac >/dev/null
}

playground=${0%/*}/../web/playground
goals=$(IFS='|' && echo "all${1+|$*}")
lacking=
for package in $(packages | awk -F '|' -v goals="(^| )($goals)( |$)" '$5 ~ goals { print $1 }'); do
    name=$(names "$package")
    [ -z "$name" ] || installed "$name" || replaced "$package" || lacking="$lacking $package"
done
if [ "${1-}" = --missing ]; then
    [ -z "$system" ] || for package in $lacking; do echo "$(names "$package"): $(field 6 "$package")"; done
    ! unpacked || echo "web/playground/node_modules: the playground of make site"
    exit
fi
[ -n "$lacking" ] || finish 'nothing is missing'
# shellcheck disable=SC2086
missing=$(names $lacking) by_hand=$(how $lacking)
[ -n "$system" ] || finish "this system is unknown, so nothing is installed: $by_hand"
echo "setup: missing: $missing"

as_root=$([ "$(id -u)" = 0 ] || echo sudo)
$as_root env >/dev/null || finish "without sudo, someone with the rights must run: $by_hand"

manager() { # arguments of the package manager
    echo "setup: ${as_root:+sudo }$tool $*"
    # sudo clears the environment, so the variable is set on the command line.
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive "$tool" $quiet "$@"
}

# A new image of Debian has no lists of packages, an old one has outdated lists.
[ "$system" != Debian ] || manager update || echo 'setup: the lists of packages could not be fetched' >&2
# shellcheck disable=SC2086
manager $install $missing || for package in $missing; do manager $install "$package" || :; done
for package in $lacking; do
    name=$(names "$package")
    installed "$name" || echo "setup: could not install $name, which is needed for: $(field 6 "$package")" >&2
done
finish
