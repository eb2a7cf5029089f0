"""Runs programs: the user's command, and processes of our own."""
