#!/bin/sh
# Installs Microsoft's Agent 365 tooling package into .tools/agent365, for the Python of the peers. Does nothing when it
# is there already.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
peers=${E2E_PEERS_DIR:-$here/../.tools/e2e}
place=${E2E_AGENT365_DIR:-$here/../.tools/agent365}

say() { printf 'agent365: %s\n' "$*"; }
fail() {
    printf 'agent365: error: %s\n' "$*" >&2
    exit 1
}

[ -x "$peers/python/bin/python" ] || fail "the peers are missing; run install-peers.sh first"
mkdir -p "$place"
stamp=$({
    "$peers/python/bin/python" --version
    cat "$here/install-agent365.sh" "$here/agent365/requirements.txt"
} | cksum)
if [ -f "$place/stamp" ] && [ "$(cat "$place/stamp")" = "$stamp" ]; then
    say "up to date in $place"
    exit 0
fi
rm -rf "$place/stamp" "$place/python"

say "installing microsoft-agents-a365-tooling"
# Beside the environment of the peers and not into it: each keeps the versions that it was pinned with.
"$peers/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --target "$place/python" -r "$here/agent365/requirements.txt" || fail "pip install failed; the reason is above"

printf '%s\n' "$stamp" >"$place/stamp"
say "installed in $place"
