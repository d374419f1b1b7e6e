#!/bin/sh
# Installs Debian's Chromium and the driver library for the page tests; does nothing when they are there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tools=$here/../.tools/browser
say() { printf 'browser: %s\n' "$*"; }

if ! command -v chromium >/dev/null 2>&1; then
    say "installing Debian's chromium"
    sudo=''
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null || {
        say "error: cannot install chromium; install it by hand" >&2
        exit 1
    }
fi
mkdir -p "$tools"
if ! cmp -s "$here/browser/package-lock.json" "$tools/package-lock.json"; then
    say "installing playwright-core into .tools/browser"
    cp "$here/browser/package.json" "$here/browser/package-lock.json" "$tools/"
    (cd "$tools" && npm ci --silent --no-audit --no-fund) || {
        rm -f "$tools/package-lock.json"
        exit 1
    }
fi
say "ready: $(chromium --version 2>/dev/null | head -n 1)"
