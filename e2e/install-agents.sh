#!/bin/sh
# Installs the agent programs of the end-to-end tests (codex, claude, gemini) into .tools/agents: about 900 MB, and half
# a minute where the network is quick. Does nothing when they are there already; run it again after a change of a
# pinned version.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
agents=${E2E_AGENTS_DIR:-$here/../.tools/agents}

say() { printf 'e2e agents: %s\n' "$*"; }
fail() {
    printf 'e2e agents: error: %s\n' "$*" >&2
    exit 1
}
need() { command -v "$1" >/dev/null 2>&1 || fail "$1 is not installed; $2"; }

need node "install Node.js 20 or newer"
need npm "install npm 10 or newer"

mkdir -p "$agents"
agents=$(cd "$agents" && pwd)

stamp=$(cat "$here/install-agents.sh" "$here/agents/package.json" "$here/agents/package-lock.json" | cksum)
if [ -f "$agents/stamp" ] && [ "$(cat "$agents/stamp")" = "$stamp" ]; then
    say "up to date in $agents"
    exit 0
fi
rm -rf "$agents/stamp" "$agents/node_modules"

say "installing codex, claude and gemini"
cp "$here/agents/package.json" "$here/agents/package-lock.json" "$agents/"
# Not `npm ci`: it refuses a lock that does not hold the native parts of every other platform.
(cd "$agents" && npm install --no-audit --no-fund --loglevel=error) ||
    fail "npm install failed; the reason is above"
for agent in codex claude gemini; do
    "$agents/node_modules/.bin/$agent" --version >/dev/null 2>&1 ||
        fail "the npm package of $agent brought no program for this machine"
done
printf '%s\n' "$stamp" >"$agents/stamp"
say "installed in $agents"
