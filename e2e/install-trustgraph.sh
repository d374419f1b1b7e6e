#!/bin/sh
# Installs TrustGraph's command line into .tools/trustgraph, with the Python of the peers. Does nothing when it is there
# already.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
peers=${E2E_PEERS_DIR:-$here/../.tools/e2e}
place=${E2E_TRUSTGRAPH_DIR:-$here/../.tools/trustgraph}

say() { printf 'trustgraph: %s\n' "$*"; }
fail() {
    printf 'trustgraph: error: %s\n' "$*" >&2
    exit 1
}

[ -x "$peers/python/bin/python" ] || fail "the peers are missing; run install-peers.sh first"
mkdir -p "$place"
stamp=$({
    "$peers/python/bin/python" --version
    cat "$here/install-trustgraph.sh" "$here/trustgraph/requirements.txt"
} | cksum)
if [ -f "$place/stamp" ] && [ "$(cat "$place/stamp")" = "$stamp" ]; then
    say "up to date in $place"
    exit 0
fi
rm -rf "$place/stamp" "$place/python"

say "installing trustgraph-cli"
# Beside the environment of the peers and not into it: each keeps the versions that it was pinned with.
"$peers/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --target "$place/python" -r "$here/trustgraph/requirements.txt" || fail "pip install failed; the reason is above"

# What pip writes names this machine's interpreter by its path; these find it from where they are.
rm -rf "$place/bin"
mkdir -p "$place/bin"
for command in "$place"/python/bin/tg-*; do
    name=$(basename "$command")
    cat >"$place/bin/$name" <<'EOF'
#!/bin/sh
place=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONPATH="$place/python" PYTHONDONTWRITEBYTECODE=1
exec "${E2E_PEERS_DIR:-$place/../e2e}/python/bin/python" "$place/python/bin/$(basename "$0")" "$@"
EOF
    chmod +x "$place/bin/$name"
done

printf '%s\n' "$stamp" >"$place/stamp"
say "installed in $place"
