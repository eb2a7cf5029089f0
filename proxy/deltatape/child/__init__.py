"""Runs the user's command: its output, its signals, how it ends."""
