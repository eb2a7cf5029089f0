"""`python -m deltatape.live`: the analysing process. Ends with its standard input."""

import gc

gc.disable()  # imports leave nothing to collect, and take a tenth of the time less

from deltatape.live.analyst import main  # noqa: E402 - after that

if __name__ == "__main__":
    main()
