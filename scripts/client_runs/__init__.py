"""Real programs, such as coding agents, against a scripted provider; for scripts/test-clients."""
