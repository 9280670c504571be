#!/usr/bin/env bash
# Runs the linter, the format check, and the tests of all packages side by side: many tests wait for servers and
# processes, while others compute. Those of whole programs take longest and wait most, so that they start first.
set -uo pipefail

run() {
  turbo run "$@" --output-logs=new-only --continue
}

run test --filter=@nodepool/e2e &
programs=$!
run lint format:check test --filter='!@nodepool/e2e' --concurrency=3
status=$?
wait "$programs" || status=1
exit "$status"
