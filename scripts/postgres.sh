#!/usr/bin/env bash
# Makes sure that PostgreSQL's programs are on this machine, for the tests that start a server of their own.
# Does nothing where they are; installs them on Debian and Ubuntu as root; says what to do everywhere else.
# No server is started and none is left running.
set -euo pipefail

programs() {
    command -v initdb >/dev/null 2>&1 || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

if programs; then
    exit 0
fi

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing PostgreSQL (once)"
    # A server that the package would create and start is not wanted.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq --yes --no-install-recommends postgresql >/dev/null
    programs
    exit 0
fi

cat >&2 <<'HELP'
PostgreSQL is not installed, and this script can install it only as root on Debian or Ubuntu.
  Debian, Ubuntu   sudo scripts/postgres.sh
  Fedora           sudo dnf install postgresql-server
  macOS            brew install postgresql
The tests that need it are skipped until `initdb` and `postgres` are on the path.
HELP
exit 1
