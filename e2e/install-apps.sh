#!/bin/sh
# Installs the official npm libraries of OpenAI and Anthropic, and the Agents SDK of OpenAI for the Python of the peers, into
# .tools/apps. Does nothing when they are there already.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
peers=${E2E_PEERS_DIR:-$here/../.tools/e2e}
place=${E2E_APPS_DIR:-$here/../.tools/apps}

say() { printf 'apps: %s\n' "$*"; }
fail() {
    printf 'apps: error: %s\n' "$*" >&2
    exit 1
}

[ -x "$peers/python/bin/python" ] || fail "the peers are missing; run install-peers.sh first"
mkdir -p "$place"
stamp=$({
    node --version
    "$peers/python/bin/python" --version
    cat "$here/install-apps.sh" "$here/apps/requirements.txt" "$here/apps/npm/package.json" "$here/apps/npm/package-lock.json"
} | cksum)
if [ -f "$place/stamp" ] && [ "$(cat "$place/stamp")" = "$stamp" ]; then
    say "up to date in $place"
    exit 0
fi
rm -rf "$place/stamp" "$place/python" "$place/npm"

say "installing the npm libraries"
mkdir -p "$place/npm"
cp "$here/apps/npm/package.json" "$here/apps/npm/package-lock.json" "$place/npm/"
(cd "$place/npm" && npm install --no-audit --no-fund --loglevel=error) || fail "npm install failed; the reason is above"

# Beside the environment of the peers and not into it: each keeps the versions that it was pinned with.
say "installing openai-agents"
"$peers/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --target "$place/python" -r "$here/apps/requirements.txt" || fail "pip install failed; the reason is above"

printf '%s\n' "$stamp" >"$place/stamp"
say "installed in $place"
