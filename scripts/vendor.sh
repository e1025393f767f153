#!/usr/bin/env bash
# Fetches the scripts that the pages of the server use, by exact version, and writes them into the
# package with a list of versions, licences and digests. Their output is committed: who installs or
# tests discreet needs neither npm nor this script. Run it to change a version, and look at the diff.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATIC=$HERE/../src/discreet/server/static
TESTS=$HERE/../tests/pages/vendored

HTMX=htmx.org@4.0.0
AXE=axe-core@4.14.0
ESBUILD=esbuild@0.28.2
EDITOR=(
    @codemirror/autocomplete@6.20.4
    @codemirror/commands@6.11.1
    @codemirror/lang-sql@6.10.0
    @codemirror/language@6.13.1
    @codemirror/lint@6.9.7
    @codemirror/state@6.7.6
    @codemirror/streamparser@6.0.0
    @codemirror/view@6.43.15
    @lezer/common@1.5.5
    @lezer/highlight@1.2.5
    @lezer/lr@1.4.12
    @marijn/find-cluster-break@1.0.4
    crelt@1.0.7
    style-mod@4.1.4
    w3c-keyname@2.2.8
)

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cp "$HERE/vendor/editor.js" "$WORK/"
cd "$WORK"
echo '{"private": true}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund --save-exact "$HTMX" "$AXE" "$ESBUILD" "${EDITOR[@]}"

mkdir -p "$STATIC" "$TESTS"
npx --no-install esbuild editor.js --bundle --minify --format=esm --target=es2022 \
    --legal-comments=none --log-level=warning --metafile=bundle.json --outfile="$STATIC/editor.js"
cp node_modules/htmx.org/dist/htmx.min.js "$STATIC/htmx.js"
cp node_modules/axe-core/axe.min.js "$TESTS/axe.js"
python3 "$HERE/vendor/list.py" "$WORK" "$STATIC" "$TESTS"
