"""What a fleet of recorders is measured with: its tapes, a simulation of it, and its figures."""
