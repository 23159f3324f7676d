#!/bin/sh
# Builds the sample's wheel as a user would, in a new environment, and runs it where there is a GPU.
#
# usage: demo.sh DIST
# DIST is the folder that holds the backend's wheel. The capabilities are those of RUSTCUDA_CAPABILITIES
# or TORCH_CUDA_ARCH_LIST where set, else six that are in wide use. PYTHON names the Python that has
# torch. Everything that comes of it lies in build/demo/.
set -eu
tools=$(dirname "$0")
# shellcheck source=tools/common.sh
. "$tools/common.sh"

dist=$(cd "$1" && pwd)
work=build/demo
log=$work/build.log
torch_python=${PYTHON:-python3}

# pip shows what a build prints only with -v, amid much of its own. This passes on the backend's lines
# as they come; pip indents them, and the whole output stays in the log.
backend_lines() {
    while IFS= read -r line; do
        case $line in
            *rustcuda:*) printf '%s\n' "${line#  }" ;;
        esac
    done
}

# Without pipefail, pip's own status has to be carried past the pipe.
build_wheel() {
    rm -f "$work/built"
    {
        # pip hands the folder on to the isolated build. Once the backend is on PyPI, it is not needed.
        "$work/venv/bin/python" -m pip wheel -v --no-deps --find-links "$dist" \
            --wheel-dir "$work/wheel" ./sample_ext 2>&1 && touch "$work/built"
    } | tee "$log" | backend_lines
    [ -e "$work/built" ]
}

# Why the wheel cannot run here; nothing where it can.
reason_not_to_run() {
    if ! nvidia-smi >/dev/null 2>&1; then
        echo "there is no NVIDIA GPU here (nvidia-smi finds none)"
    elif ! "$torch_python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
        echo "$torch_python has no torch that sees the GPU (PYTHON=… names another)"
    fi
}

if [ -z "${RUSTCUDA_CAPABILITIES:-}" ] && [ -z "${TORCH_CUDA_ARCH_LIST:-}" ]; then
    export RUSTCUDA_CAPABILITIES='7.5;8.0;8.6;8.9;9.0;10.0'
fi

rm -rf "$work"
"$tools/ensure-venv.sh" "$work/venv"
say "pip wheel --find-links $1 ./sample_ext   (everything it prints is in $log)"
if ! build_wheel; then
    tail -n 40 "$log" >&2
    die "the sample's wheel was not built; the whole output is in $log"
fi
for wheel in "$work"/wheel/*.whl; do
    say "built $wheel ($(wc -c <"$wheel") bytes)"
done

reason=$(reason_not_to_run)
if [ -n "$reason" ]; then
    say "not run: $reason"
    exit 0
fi
# Into a folder of its own, so that the environment that has torch stays as it is.
"$work/venv/bin/python" -m pip install -q --no-deps --target "$work/site" "$work"/wheel/*.whl
PYTHONPATH="$work/site${PYTHONPATH:+:$PYTHONPATH}" "$torch_python" -m sample_ext.demo
