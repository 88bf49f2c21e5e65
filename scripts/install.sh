#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh install|uninstall: puts cucc below $PREFIX, for make install, or removes it. DESTDIR stands before PREFIX, for
# packages. Nothing that is installed contains a path, so the folder can be moved.
set -eu
cd "${0%/*}/.."

root=${DESTDIR-}${PREFIX:-/usr/local}
case $root in /*) ;; *) echo "make install: PREFIX=$root: must begin with /" >&2; exit 1 ;; esac
lib=$root/lib/cucc

remove() {
    rm -rf "$lib" "$root/bin/cucc" "$root/share/man/man1/cucc.1"
}

case $1 in
install)
    built=$(cpu/cucc --toolkit)
    remove
    mkdir -p "$lib/bin" "$lib/nvvm/libdevice" "$root/bin" "$root/share/man/man1"
    cp -R cpu/include cpu/src cpu/cu2cpp.c "$lib"
    cp -R common/legacy.h common/legacy "$lib/include"
    cp -R "$built/lib64" "$built/machine" "$lib"
    cp "$built/bin/cu2cpp" "$lib/bin"
    ln -s ../../../bin/cucc "$lib/bin/nvcc"
    cp cpu/cucc "$root/bin"
    cp cpu/cucc.1 "$root/share/man/man1"
    chmod -R u+rwX,go+rX,go-w "$lib" "$root/bin/cucc" "$root/share/man/man1/cucc.1"
    echo "installed $root/bin/cucc; man cucc says how to use it"
    ;;
uninstall)
    [ -e "$lib" ] || { echo "make uninstall: cucc is not installed in $root" >&2; exit 1; }
    remove
    ;;
esac
