"""Frame a response (`decode`), rebuild its reply (`rebuild`), and run the rules over it."""
