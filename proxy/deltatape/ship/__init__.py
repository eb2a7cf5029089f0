"""`deltatape ship`: finished tapes go to an object store, in a process of their own."""
