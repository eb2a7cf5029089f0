"""Runs the user's command: output, signals, exit code."""
