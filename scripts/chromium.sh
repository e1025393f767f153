#!/usr/bin/env bash
# Makes sure that Chromium is on this machine, for the tests that open the pages of the server.
# Does nothing where it is; installs it on Debian as root; says what to do everywhere else.
# No other browser is downloaded, and nothing is left running.
set -euo pipefail

program() {
    command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1
}

if program; then
    exit 0
fi

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Chromium (once)"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null
    program
    exit 0
fi

cat >&2 <<'HELP'
Chromium is not installed, and this script can install it only as root on Debian.
  Debian           sudo scripts/chromium.sh
  Fedora           sudo dnf install chromium
  macOS            brew install chromium
The tests that need it are skipped until `chromium` is on the path.
HELP
exit 1
