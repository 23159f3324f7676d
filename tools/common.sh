# Shared by the scripts beside it; sourced, never run.
# shellcheck shell=sh

say() {
    printf '%s\n' "$*" >&2
}

die() {
    say "error: $*"
    exit 1
}

# Runs a command as root; fails when there is neither root nor sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        say "this needs root: $*"
        return 1
    fi
}

# Whether this is one of the given Debian releases; "debian_release 12 13", or none for any with apt-get.
debian_release() {
    command -v apt-get >/dev/null 2>&1 || return 1
    [ $# -gt 0 ] || return 0
    # shellcheck source=/dev/null
    debian=$(. /etc/os-release 2>/dev/null && printf '%s %s' "${ID:-}" "${VERSION_ID:-}")
    for release in "$@"; do
        [ "$debian" = "debian $release" ] && return 0
    done
    return 1
}

# Installs Debian packages. apt's own output goes to stderr, so that stdout stays the caller's.
apt_install() {
    say "installing with apt: $*"
    as_root apt-get update -q >&2 &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2
}
