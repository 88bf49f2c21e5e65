#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the packages that the suite uses and this machine lacks. When nothing is missing, it changes nothing and does not use the
# network. For a package that cannot be installed it says what will be missing, and continues; only a missing compiler is an error.
#   setup.sh [GOAL…]          the packages for building and running, and for these goals of make
#   setup.sh --missing GOAL…  only lists those that are missing, each with its purpose
#   setup.sh --how PACKAGE…   prints the command that installs these packages, given by their Debian names
set -eu

# Debian package | goals of make that need it, or all | its purpose | its name on Fedora | on Arch | on openSUSE, or - if
# the system has no such package
packages() {
    cat <<'END'
g++|all|the compilers of C and C++|gcc-c++|gcc|gcc-c++
make|all|the build|make|make|make
python3|all|make run, and all that reads the headers of the programs|python3|python|python3
libpng-dev|all|PNG pictures|libpng-devel|libpng|libpng16-devel
libwebp-dev|all|animations as WebP|libwebp-devel|libwebp|libwebp-devel
freeglut3-dev|all|windows|freeglut-devel|freeglut|freeglut-devel
libegl-dev|all|CUDA with OpenGL|mesa-libEGL-devel|libglvnd|Mesa-libEGL-devel
libvulkan-dev|all|CUDA with Vulkan|vulkan-loader-devel|vulkan-headers|vulkan-devel
libvulkan1|all|CUDA with Vulkan|vulkan-loader|vulkan-icd-loader|libvulkan1
libgl1-mesa-dri|all|OpenGL in software|mesa-dri-drivers|mesa|Mesa-dri
ffmpeg|all|animations as GIF and as videos|ffmpeg-free|ffmpeg|ffmpeg
libboost-context-dev|all|fast barriers on the CPU back end|boost-devel|boost|libboost_context-devel
libopenblas-dev|all|cuBLAS and cuSOLVER on the CPU back end, beside cuBLAS on a GPU|openblas-devel|openblas|openblas-devel
libfftw3-dev|all|cuFFT on the CPU back end, beside cuFFT on a GPU|fftw-devel|fftw|fftw3-devel
libthrust-dev|all|Thrust on the CPU back end|-|-|-
ocl-icd-opencl-dev|all|OpenCL|ocl-icd-devel|ocl-icd|ocl-icd-devel
opencl-headers|all|OpenCL|opencl-headers|opencl-headers|opencl-headers
libopenmpi-dev|all|MPI, with mpirun|openmpi-devel|openmpi|openmpi4-devel
python3-matplotlib|bench docs test|the plots of make bench|python3-matplotlib|python-matplotlib|python3-matplotlib
python3-pygments|site test|the highlighted sources of make site|python3-pygments|python-pygments|python3-Pygments
python3-markdown-it|site test|the documents of make site|python3-markdown-it-py|python-markdown-it-py|python3-markdown-it-py
python3-pil|gallery test|the pictures of make gallery and of the test suite|python3-pillow|python-pillow|python3-Pillow
python3-numpy|test|the test suite|python3-numpy|python-numpy|python3-numpy
python3-pytest-xdist|test|the test suite, one test on each core|python3-pytest-xdist|python-pytest-xdist|python3-pytest-xdist
similarity-tester|grade test|the comparison of submissions in make grade|-|-|-
pocl-opencl-icd|test|the tests of OpenCL, on the CPU|pocl|pocl|pocl
chromium|test|the tests of the pages of make site|chromium|chromium|chromium
xvfb|test|the tests of windows|xorg-x11-server-Xvfb|xorg-server-xvfb|xorg-x11-server-Xvfb
python3-xlib|test|the tests of windows|python3-xlib|python-xlib|python3-python-xlib
clang-format|format test|make format|clang-tools-extra|clang|clang-tools
black|format test|make format|black|python-black|python3-black
cmake|test|the tests of CMakeLists.txt|cmake|cmake|cmake
jupyter-nbconvert|test|the test of the notebook|python3-nbconvert|jupyter-nbconvert|python3-nbconvert
python3-ipykernel|test|the test of the notebook|python3-ipykernel|python-ipykernel|python3-ipykernel
END
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
Fedora|4|dnf|rpm||install -y --setopt=install_weak_deps=False|dnf install
openSUSE|6|zypper|rpm|--non-interactive|install --no-recommends|zypper install
Arch|5|pacman|pacman||-S --needed --noconfirm|pacman -S --needed
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

case ${1-} in --how) shift && how "$@" && exit ;; esac

# Only the compilers are required; without other packages parts of the suite are switched off.
finish() { # what to say, if anything
    [ $# = 0 ] || echo "setup: $1"
    for compiler in "${CC:-cc}" "${CXX:-g++}" "${HOSTCC:-cc}"; do
        command -v "${compiler%% *}" >/dev/null || { echo "setup: there is no $compiler, and nothing builds without it" >&2; exit 1; }
    done
    exit 0
}

# Whether another program serves the same purpose. On Ubuntu, Chromium is a snap, which apt does not install.
replaced() { # Debian package
    case $1 in
    chromium) command -v google-chrome || command -v chromium-browser || grep -qsx ID=ubuntu "${OS_RELEASE:-/etc/os-release}" ;;
    ffmpeg) command -v ffmpeg ;;
    *) return 1 ;;
    esac >/dev/null
}

goals=$(IFS='|' && echo "all${1+|$*}")
lacking=
for package in $(packages | awk -F '|' -v goals="(^| )($goals)( |$)" '$2 ~ goals { print $1 }'); do
    name=$(names "$package")
    [ -z "$name" ] || installed "$name" || replaced "$package" || lacking="$lacking $package"
done
if [ "${1-}" = --missing ]; then
    [ -z "$system" ] || for package in $lacking; do echo "$(names "$package"): $(field 3 "$package")"; done
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
    installed "$name" || echo "setup: could not install $name, which is needed for: $(field 3 "$package")" >&2
done
finish
