"""`python -m deltatape.live`: the analysing process. Ends with its standard input."""

from deltatape.live.analyst import main

if __name__ == "__main__":
    main()
