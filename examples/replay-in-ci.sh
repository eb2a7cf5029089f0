#!/bin/sh
# Runs a command against each capture of a folder, in CI: examples/replay-in-ci.sh FOLDER COMMAND...
# Every tape is a case of its own. Fails when for any of them the command fails, asks for something
# that is not on the tape, leaves an exchange of it unplayed, or makes a mistake with what it was
# sent; says which. The tape of an app that went wrong fails until the app is mended.
set -u
if [ "$#" -lt 2 ]; then
    echo "usage: $0 FOLDER COMMAND..." >&2
    exit 2
fi
folder=$1
shift
failed=0
for tape in "$folder"/*.tape; do
    printf '== %s\n' "$tape"
    deltatape replay --speed instant "$tape" -- "$@" && continue
    printf 'FAILED with %s: %s\n' "$?" "$tape"
    failed=1
done
exit "$failed"
