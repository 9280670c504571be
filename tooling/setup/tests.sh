#!/usr/bin/env bash
# Runs the linter, the format check, and the tests of all packages side by side: many tests wait for servers and
# processes, while others compute. Those of whole programs take longest and wait most, so that they start first.
set -uo pipefail

options=(--output-logs=new-only --continue)

turbo run test --filter=@nodepool/e2e "${options[@]}" &
programs=$!
# A program in the background ignores Ctrl-C.
trap 'kill "$programs" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
turbo run lint format:check test --filter='!@nodepool/e2e' --concurrency=3 "${options[@]}"
status=$?
wait "$programs" || status=1
trap - EXIT
exit "$status"
