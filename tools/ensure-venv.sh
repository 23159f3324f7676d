#!/bin/sh
# Makes sure that a virtual environment is in the folder named, of Python 3.10 or later.
#
# usage: ensure-venv.sh FOLDER
# PYTHON names the interpreter to take. On Debian python3-venv is installed where it is missing.
set -eu
tools=$(dirname "$0")
# shellcheck source=tools/common.sh
. "$tools/common.sh"

venv=$1

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

# An interpreter that the user names is the only candidate.
find_python() {
    set -- python3 python3.14 python3.13 python3.12 python3.11 python3.10
    [ -z "${PYTHON:-}" ] || set -- "$PYTHON"
    for python in "$@"; do
        if is_new_enough "$python"; then
            command -v "$python"
            return
        fi
    done
}

# pip in it is the last thing that venv makes: without it the environment is half made.
if is_new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

python=$(find_python)
if [ -z "$python" ] && debian_release 12 13; then
    apt_install python3 python3-venv || true
    python=$(find_python)
fi
[ -n "$python" ] || die "no Python 3.10 or later was found; name one: PYTHON=/path/to/python3 make …"

# Debian splits ensurepip off from python3.
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    if ! debian_release || ! apt_install python3-venv; then
        die "$python cannot make virtual environments; as root: apt-get install python3-venv"
    fi
fi
rm -rf "$venv"
mkdir -p "$(dirname "$venv")"
"$python" -m venv "$venv"
