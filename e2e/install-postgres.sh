#!/bin/sh
# Installs PostgreSQL 15 or newer and PgBouncer from the packages of Debian or Ubuntu, for the tests of the shared store. Does
# nothing when they are there already. Needs root for that; elsewhere install `postgresql` with your package manager, or
# let PGBIN name the directory of `initdb` and `postgres`.
set -eu

say() { printf 'postgres: %s\n' "$*"; }
fail() {
    printf 'postgres: error: %s\n' "$*" >&2
    exit 1
}
here=$(cd "$(dirname "$0")" && pwd)

if "$here/postgres-cluster" programs >/dev/null 2>&1; then
    say "up to date: $("$here/postgres-cluster" programs)"
    exit 0
fi
command -v apt-get >/dev/null 2>&1 || fail "install PostgreSQL 15 or newer (initdb, postgres, psql), or set PGBIN"
[ "$(id -u)" -eq 0 ] || fail "run as root: apt-get install postgresql pgbouncer"
export DEBIAN_FRONTEND=noninteractive
say "installing postgresql and pgbouncer"
# The package would start a cluster of its own, which nobody needs.
mkdir -p /etc/postgresql-common
[ -f /etc/postgresql-common/createcluster.conf ] ||
    printf 'create_main_cluster = false\n' >/etc/postgresql-common/createcluster.conf
install() { apt-get install -y -qq --no-install-recommends postgresql pgbouncer >/dev/null; }
install || { apt-get update -qq && install; } || fail "apt-get failed; the reason is above"
"$here/postgres-cluster" programs >/dev/null || fail "initdb and postgres are not where the package puts them"
say "installed: $("$here/postgres-cluster" programs)"
