#!/bin/sh
# curl as people paste it: $1 base URL, $2 request as JSON. Prints the raw body.
exec curl --no-progress-meter --fail-with-body -N -H 'Content-Type: application/json' \
    -H 'Authorization: Bearer sk-fake-000' -d "$2" "$1/chat/completions"
