#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what the suite wants and this machine lacks. Nothing missing: nothing is changed or asked of
# the network. What cannot be installed is named, with what it would have brought, and the rest goes on;
# only a missing compiler is an error.
set -eu

# Debian package | what it brings | how it is called on Fedora, Arch, Homebrew
packages() {
    cat <<'END'
g++|the C++ compiler|gcc-c++, gcc, gcc
gcc|the C compiler|gcc, gcc, gcc
make|the build|make, make, make
libpng-dev|PNG pictures|libpng-devel, libpng, libpng
libwebp-dev|animations as WebP|libwebp-devel, libwebp, webp
freeglut3-dev|windows|freeglut-devel, freeglut, freeglut
libegl-dev|CUDA with OpenGL|mesa-libEGL-devel, mesa, mesa
libgl1-mesa-dri|OpenGL in software|mesa-dri-drivers, mesa, mesa
ffmpeg|animations as GIF and as videos|ffmpeg-free, ffmpeg, ffmpeg
libboost-context-dev|fast barriers on the CPU back end|boost-devel, boost, boost
python3-pytest|the test suite|python3-pytest, python-pytest, pytest
python3-numpy|the test suite|python3-numpy, python-numpy, numpy
python3-pil|the comparison of pictures in the test suite|python3-pillow, python-pillow, pillow
python3-matplotlib|the plots of make bench|python3-matplotlib, python-matplotlib, python-matplotlib
chromium|the test of the page that make bench writes|chromium, chromium, chromium
xvfb|the tests of windows|xorg-x11-server-Xvfb, xorg-server-xvfb, xorg-server
python3-xlib|the tests of windows|python3-xlib, python-xlib, python-xlib
END
}

brings() { packages | awk -F '|' -v package="$1" '$1 == package { print $2 }'; }

# No compiler, no suite; everything else only takes something away.
finish() {
    for tool in "${CC:-cc}" "${CXX:-g++}"; do
        command -v "${tool%% *}" >/dev/null || { echo "setup: there is no $tool, and nothing builds without it" >&2; exit 1; }
    done
    exit 0
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "setup: this is not Debian or Ubuntu, so nothing is installed. What the suite uses:"
    packages | awk -F '|' '{ split($3, n, ", "); printf "  %-42s Fedora: %s, Arch: %s, Homebrew: %s\n", $2, n[1], n[2], n[3] }'
    finish
fi

# Ubuntu has Chromium as a snap only, which apt does not install; the test takes another browser that is there.
unwanted() { [ "$1" = chromium ] && { command -v google-chrome || command -v chromium-browser || grep -qsx ID=ubuntu /etc/os-release; } >/dev/null; }

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=
for package in $(packages | cut -d '|' -f 1); do
    installed "$package" || unwanted "$package" || missing="$missing $package"
done
missing=${missing# }
if [ -z "$missing" ]; then
    echo "setup: nothing is missing"
    finish
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup: missing: $missing; without sudo, someone with the rights must run: apt-get install $missing" >&2
        finish
    fi
    as_root=sudo
fi

# sudo clears the environment, so the setting goes with the command
apt() {
    echo "setup: ${as_root:+sudo }apt-get $*"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@"
}

# Does apt know every one of them? A fresh image has no lists of packages, an old one stale lists.
known() {
    for package in $missing; do
        apt-cache show "$package" >/dev/null 2>&1 || return 1
    done
}

echo "setup: missing: $missing"
updated=
known || { updated=yes; apt update || echo "setup: the lists of packages could not be fetched" >&2; }
# shellcheck disable=SC2086
install() { apt install -y --no-install-recommends "$@"; }
if ! install $missing; then
    [ -n "$updated" ] || { apt update && install $missing; } || :
    for package in $missing; do
        installed "$package" || install "$package" || :
    done
fi

for package in $missing; do
    installed "$package" || echo "setup: could not install $package: without it goes $(brings "$package")" >&2
done
finish
