"""Match requests with recorded exchanges and schedule their bytes, without I/O."""
