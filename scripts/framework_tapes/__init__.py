"""Tapes of frameworks: the provider that answers them by a script, and what the tapes tell."""
