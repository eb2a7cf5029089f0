"""`deltatape record`: the gateway, the command it runs, and the lines it prints."""
