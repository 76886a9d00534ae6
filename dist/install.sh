#!/bin/sh
# Installs the eyas command: one file, whose checksum is verified.
#
#   sh install.sh --from WHERE [--to DIR]
#
# WHERE is a folder or an https:// address with the files of a release: SHA256SUMS and the archives. DIR is where the
# command goes: /usr/local/bin for root, otherwise ~/.local/bin. Nothing else is changed.
set -eu

fail() {
    printf 'install.sh: %s\n' "$1" >&2
    exit 1
}

usage() {
    sed -n '2,7s/^# \{0,1\}//p' "$0" 2>/dev/null || echo "sh install.sh --from WHERE [--to DIR]"
}

# All of it is one function, so that nothing is run of a script that was cut off on its way.
main() {
    from=${EYAS_FROM:-}
    to=${EYAS_TO:-}
    while [ $# -gt 0 ]; do
        case $1 in
        --from | --to) [ $# -ge 2 ] || fail "$1 needs a value" ;;
        esac
        case $1 in
        --from) from=$2 && shift 2 ;;
        --to) to=$2 && shift 2 ;;
        -h | --help) usage && return ;;
        *) fail "$1 is unknown: it takes --from WHERE and --to DIR" ;;
        esac
    done
    [ -n "$from" ] || fail "--from says where the files of a release are: a folder, or an https:// address"
    [ "$(uname -s)" = Linux ] || fail "there is no archive for $(uname -s) yet: build from source, as the README says"
    case $(uname -m) in
    x86_64 | amd64) arch=x86_64 ;;
    aarch64 | arm64) arch=aarch64 ;;
    *) fail "there is no archive for $(uname -m) yet: build from source, as the README says" ;;
    esac
    if [ -z "$to" ]; then
        to=$HOME/.local/bin
        [ "$(id -u)" -ne 0 ] || to=/usr/local/bin
    fi
    mkdir -p "$to" || fail "$to cannot be made: --to names another directory"

    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM
    fetch SHA256SUMS
    line=$(grep -E "^[0-9a-f]{64}  eyas-[0-9][^ /]*-$arch-linux\.tar\.gz\$" "$work/SHA256SUMS" | tail -n 1) ||
        fail "$from has no archive for $arch"
    archive=${line##* }
    fetch "$archive"
    [ "$(checksum "$work/$archive")" = "${line%% *}" ] ||
        fail "$archive is not what SHA256SUMS says: nothing was installed; fetch it again"
    tar -xzf "$work/$archive" -C "$work" --strip-components=1 "${archive%.tar.gz}/eyas"
    "$work/eyas" --version >/dev/null || fail "the command does not run on this machine: nothing was installed"
    # Beside its place first, so that it is replaced at once, and also while it runs.
    cp "$work/eyas" "$to/.eyas-new-$$" && chmod 755 "$to/.eyas-new-$$" && mv -f "$to/.eyas-new-$$" "$to/eyas" || {
        rm -f "$to/.eyas-new-$$"
        fail "$to cannot be written to: --to names another directory"
    }
    echo "$("$to/eyas" --version) is in $to/eyas"
    case ":$PATH:" in
    *":$to:"*) echo "try: eyas demo" ;;
    *) echo "$to is not in PATH; try: $to/eyas demo" ;;
    esac
}

# Fetches a file of the release into the working directory.
fetch() {
    case $from in
    https://*)
        if command -v curl >/dev/null 2>&1; then
            curl --proto '=https' --tlsv1.2 -fsSL -o "$work/$1" "${from%/}/$1"
        elif command -v wget >/dev/null 2>&1; then
            wget -q -O "$work/$1" "${from%/}/$1"
        else
            fail "curl or wget is needed"
        fi || fail "${from%/}/$1 cannot be fetched"
        ;;
    *://*) fail "only https:// addresses and folders are used, not $from" ;;
    *) cp "$from/$1" "$work/$1" || fail "$from is no folder with the files of a release" ;;
    esac
}

checksum() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum "$1"
    else
        shasum -a 256 "$1"
    fi | cut -d ' ' -f 1
}

main "$@"
