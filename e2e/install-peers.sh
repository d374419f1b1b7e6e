#!/bin/sh
# Installs the servers, the clients and the conformance suite of the end-to-end tests into .tools/e2e.
# Does nothing when they are there already; run it again after a change of a pinned version.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
peers=${E2E_PEERS_DIR:-$here/../.tools/e2e}
python=${PYTHON:-python3}

say() { printf 'e2e peers: %s\n' "$*"; }
fail() {
    printf 'e2e peers: error: %s\n' "$*" >&2
    exit 1
}
need() { command -v "$1" >/dev/null 2>&1 || fail "$1 is not installed; $2"; }

need node "install Node.js 20 or newer"
need npm "install npm 10 or newer"
need "$python" "install Python 3.10 or newer, or name one with PYTHON=..."

mkdir -p "$peers"
peers=$(cd "$peers" && pwd)

stamp_of() {
    {
        node --version
        "$python" --version
        printf '%s\n' "$peers"
        cat "$here/install-peers.sh" "$here/npm/package.json" "$here/npm/package-lock.json" \
            "$here/python/requirements.txt"
    } | cksum
}

stamp=$(stamp_of)
if [ -f "$peers/stamp" ] && [ "$(cat "$peers/stamp")" = "$stamp" ]; then
    say "up to date in $peers"
    exit 0
fi
rm -f "$peers/stamp"

install_npm() {
    say "installing the npm servers and clients"
    rm -rf "$peers/npm"
    mkdir -p "$peers/npm"
    cp "$here/npm/package.json" "$here/npm/package-lock.json" "$peers/npm/"
    # Not `npm ci`: it refuses a lock that does not hold the native parts of every other platform.
    (cd "$peers/npm" && npm install --no-audit --no-fund --loglevel=error) ||
        fail "npm install failed; the reason is above"
    "$peers/npm/node_modules/node/bin/node" --version >/dev/null ||
        fail "the npm package node brought no program for this machine"
}

# Debian ships python3 without ensurepip, so there are three ways to a virtual environment.
make_venv() {
    rm -rf "$peers/python"
    "$python" -m venv "$peers/python" >/dev/null 2>&1 && return
    say "python3 -m venv did not work; trying the python3-venv package"
    rm -rf "$peers/python"
    if command -v apt-get >/dev/null 2>&1; then
        sudo=''
        [ "$(id -u)" = 0 ] || sudo=sudo
        { $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; } \
            >/dev/null || say "apt-get could not install python3-venv"
        "$python" -m venv "$peers/python" >/dev/null 2>&1 && return
        rm -rf "$peers/python"
    fi
    say "trying virtualenv from pip"
    "$python" -m pip install --quiet --root-user-action=ignore --disable-pip-version-check \
        --target "$peers/virtualenv" virtualenv &&
        PYTHONPATH="$peers/virtualenv" "$python" -m virtualenv --quiet "$peers/python" && return
    fail "no virtual environment could be made; install the package python3-venv and run this again"
}

install_python() {
    say "making a virtual environment with $("$python" --version)"
    make_venv
    say "installing the Python servers and clients"
    "$peers/python/bin/python" -m pip install --quiet --disable-pip-version-check \
        -r "$here/python/requirements.txt" || fail "pip install failed; the reason is above"
    "$peers/python/bin/python" -m pip check --disable-pip-version-check >/dev/null ||
        fail "the pinned Python packages do not fit this Python; see: pip check"
}

install_npm
install_python
printf '%s\n' "$stamp" >"$peers/stamp"
say "installed in $peers"
