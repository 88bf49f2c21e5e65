# SPDX-License-Identifier: MIT
# Completion for bash: the options of cucc --help, else files
_cucc() {
    [[ $2 != -* ]] || mapfile -t COMPREPLY < <(compgen -W "$("$1" --help | grep -oE '(^|[ (])--?[A-Za-z][A-Za-z-]*' | tr -d '(')" -- "$2")
}
complete -o default -F _cucc cucc
