#!/usr/bin/env bash
# Replays a capture to a command, in CI: examples/replay-in-ci.sh "bug.tape#1 more.tape" COMMAND...
# Fails when the command fails, when it asks for something that is not on the tapes, or when it
# leaves an exchange of theirs unplayed.
set -uo pipefail
read -ra tapes <<<"$1"
shift
log=$(mktemp)
deltatape replay --speed instant --listen 127.0.0.1:0 "${tapes[@]}" 2>"$log" &
player=$!
until grep -q 'Ctrl-C ends' "$log"; do
    kill -0 "$player" 2>/dev/null || { cat "$log"; exit 2; }
    sleep 0.1
done
base=$(grep -o 'http://127.0.0.1:[0-9]*' "$log" | head -n 1)
status=0
OPENAI_BASE_URL=$base/v1 "$@" || status=$?
kill "$player"
wait "$player" || [ "$status" != 0 ] || status=1
cat "$log"
rm -f "$log"
exit "$status"
