#!/usr/bin/env bash
# What the CI job runs. VERSION=broken ./check.sh shows the tests failing.
set -euo pipefail
cd "$(dirname "$0")"
tapes=../../recordings/incidents

# By plugin: each test has its own tape.
pytest -q

# By wrapper, for any test runner: all tests have the same tapes.
deltatape replay --speed instant --volatile tool_choice "$tapes"/{3-app-events,5-agent-loop}/fixed.tape \
    -- python -m unittest discover -q wrapped
