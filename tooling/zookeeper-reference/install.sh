#!/bin/sh
# Installs the npm package `zookeeper` into .tools/zookeeper-reference, where the behaviour suite and the benchmark look
# for it. It is compiled on the spot (make, g++, cmake and python3 are needed; it takes some minutes), so it is no
# dependency of the workspace. Does nothing when it is there already.
set -eu

version=7.3.0
root=$(cd "$(dirname "$0")/../.." && pwd)
target="$root/.tools/zookeeper-reference"

if [ -f "$target/installed-$version" ]; then
  echo "zookeeper $version is in $target"
  exit 0
fi
for tool in make g++ cmake python3; do
  if ! command -v "$tool" >/dev/null; then
    echo "zookeeper $version cannot be compiled: $tool is missing" >&2
    exit 1
  fi
done
mkdir -p "$target"
# Two installations at once would compile over each other.
if ! mkdir "$target/lock" 2>/dev/null; then
  echo "another installation is under way; if not, remove $target/lock" >&2
  exit 1
fi
trap 'rmdir "$target/lock"' EXIT
[ -f "$target/package.json" ] || echo '{"private":true}' >"$target/package.json"
(cd "$target" && npm install --ignore-scripts --no-audit --no-fund --save-exact "zookeeper@$version")
# Its own script, called by name: npm may be configured to run none during an installation.
(cd "$target/node_modules/zookeeper" && npm run install)
# What was compiled must also load.
node -e 'require(process.argv[1])' "$target/node_modules/zookeeper"
touch "$target/installed-$version"
