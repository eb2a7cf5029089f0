"""Measures a fleet of recorders: makes its tapes, simulates it, and writes docs/fleet.md."""
