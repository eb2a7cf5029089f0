"""`deltatape record`: a gateway, the command around it, and what is told of both."""
