#!/bin/sh
# Installs what checks the API document and the API behind it (a linter and a fuzzer) into .tools/api, with the Node.js and
# the Python of the peers. Does nothing when they are there already.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
peers=${E2E_PEERS_DIR:-$here/../.tools/e2e}
checkers=${E2E_API_DIR:-$here/../.tools/api}

say() { printf 'api checkers: %s\n' "$*"; }
fail() {
    printf 'api checkers: error: %s\n' "$*" >&2
    exit 1
}

[ -x "$peers/python/bin/python" ] || fail "the peers are missing; run install-peers.sh first"
mkdir -p "$checkers"
# What is installed does not know where it is, so the place is not part of the stamp.
stamp=$({
    "$peers/python/bin/python" --version
    cat "$here/install-api-checkers.sh" "$here/api/package-lock.json" "$here/api/requirements.txt"
} | cksum)
if [ -f "$checkers/stamp" ] && [ "$(cat "$checkers/stamp")" = "$stamp" ]; then
    say "up to date in $checkers"
    exit 0
fi
rm -rf "$checkers/stamp" "$checkers/npm" "$checkers/python"

say "installing the linter"
mkdir -p "$checkers/npm"
cp "$here/api/package.json" "$here/api/package-lock.json" "$checkers/npm/"
(cd "$checkers/npm" && npm ci --no-audit --no-fund --loglevel=error) || fail "npm ci failed; the reason is above"

say "installing the fuzzer"
# Beside the environment of the peers and not into it: each keeps the versions that it was pinned with.
"$peers/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --target "$checkers/python" -r "$here/api/requirements.txt" || fail "pip install failed; the reason is above"

printf '%s\n' "$stamp" >"$checkers/stamp"
say "installed in $checkers"
