#!/bin/sh
# Installs Microsoft's Agent 365 tooling package and its extensions for frameworks into .tools/agent365, for the Python of
# the peers. Does nothing when they are there already.
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
    cat "$here/install-agent365.sh" "$here/agent365/requirements.txt" "$here/agent365/semantic-kernel-requirements.txt"
} | cksum)
if [ -f "$place/stamp" ] && [ "$(cat "$place/stamp")" = "$stamp" ]; then
    say "up to date in $place"
    exit 0
fi
rm -rf "$place/stamp" "$place/python" "$place/semantic-kernel"

# Beside the environment of the peers and not into it: each keeps the versions that it was pinned with. Semantic Kernel
# needs older versions of some packages than the other extensions, so its directory comes first in its path.
install() {
    "$peers/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --target "$place/$1" -r "$here/agent365/$2" || fail "pip install failed; the reason is above"
}
say "installing microsoft-agents-a365-tooling and its extensions"
install python requirements.txt
install semantic-kernel semantic-kernel-requirements.txt

printf '%s\n' "$stamp" >"$place/stamp"
say "installed in $place"
