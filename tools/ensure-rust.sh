#!/bin/sh
# Makes sure that a Rust fit for GPU kernels is here, and prints the path of its rustc.
#
# Fit: rustc 1.96 or later with the library of nvptx64-nvidia-cuda, either compiled (rustup target add)
# or as source (rustup component add rust-src, Debian's rust-web-src). RUSTC, where set, is the only
# candidate; else every rustc on PATH and Debian's own are looked at, as the first need not be the one.
set -eu
tools=$(dirname "$0")
# shellcheck source=tools/common.sh
. "$tools/common.sh"

OLDEST_MINOR=96

# Says why a rustc does not fit; says nothing where it does.
lack_of() {
    release=$("$1" -vV 2>/dev/null | sed -n 's/^release: //p')
    if [ -z "$release" ]; then
        echo "does not run"
        return
    fi
    major=${release%%.*}
    rest=${release#*.}
    if [ "$major" -eq 1 ] && [ "${rest%%.*}" -lt "$OLDEST_MINOR" ]; then
        echo "is $release, older than 1.$OLDEST_MINOR"
        return
    fi
    rustlib=$("$1" --print sysroot)/lib/rustlib
    if [ ! -d "$rustlib/nvptx64-nvidia-cuda" ] && [ ! -d "$rustlib/src/rust/library" ]; then
        echo "is $release, but has neither the target nvptx64-nvidia-cuda nor rust-src"
    fi
}

candidates() {
    if [ -n "${RUSTC:-}" ]; then
        command -v "$RUSTC" || printf '%s\n' "$RUSTC"
        return
    fi
    printf '%s:/usr/bin\n' "$PATH" | tr ':' '\n' | while IFS= read -r folder; do
        if [ -x "$folder/rustc" ]; then
            printf '%s\n' "$folder/rustc"
        fi
    done | awk '!seen[$0]++'
}

# Prints the first rustc that fits, and on stderr why the others do not.
find_rust() {
    candidates | while IFS= read -r rustc; do
        lack=$(lack_of "$rustc")
        if [ -z "$lack" ]; then
            printf '%s\n' "$rustc"
            break
        fi
        [ -n "$quiet" ] || say "  $rustc $lack"
    done
}

rustup_line() {
    say "install one with rustup (https://rustup.rs), then start again:"
    # shellcheck disable=SC2016 # to be typed as it stands
    say '  rustup toolchain install stable --profile minimal --component rust-src &&' \
        'export RUSTC="$(rustup which --toolchain stable rustc)"'
}

quiet=1
found=$(find_rust)
if [ -n "$found" ]; then
    printf '%s\n' "$found"
    exit 0
fi

say "no Rust that can compile for NVIDIA GPUs was found:"
quiet=
find_rust
if [ -n "${RUSTC:-}" ]; then
    rustup_line
    die "RUSTC names a Rust that does not fit"
fi
if debian_release 12 13 && apt_install rustc-web cargo-web rust-web-src; then
    found=$(find_rust)
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        exit 0
    fi
    say "Debian's packages do not fit; is its security archive in the apt sources?"
elif debian_release 12 13; then
    say "as root: apt-get install rustc-web cargo-web rust-web-src"
    say "or without root:"
fi
rustup_line
die "no fitting Rust"
