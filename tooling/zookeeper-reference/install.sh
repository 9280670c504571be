#!/bin/sh
# Installs the npm package `zookeeper` into .tools/zookeeper-reference for the behaviour suite and the benchmark. The package
# is not a dependency of the workspace, because its compilation needs make, g++, cmake, python3 and some minutes. Does
# nothing if it is installed already.
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
# Concurrent installations would overwrite each other's files.
if ! mkdir "$target/lock" 2>/dev/null; then
  echo "another installation is in progress; if not, remove $target/lock" >&2
  exit 1
fi
trap 'rmdir "$target/lock"' EXIT
[ -f "$target/package.json" ] || echo '{"private":true}' >"$target/package.json"
(cd "$target" && npm install --ignore-scripts --no-audit --no-fund --save-exact "zookeeper@$version")
# Runs the package's install script explicitly, because npm may be configured to ignore scripts.
(cd "$target/node_modules/zookeeper" && npm run install)
# Checks that the compiled package loads.
node -e 'require(process.argv[1])' "$target/node_modules/zookeeper"
touch "$target/installed-$version"
