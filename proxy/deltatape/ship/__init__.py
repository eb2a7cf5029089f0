"""`deltatape ship`: sends finished tapes to an object store, as a process of its own."""
