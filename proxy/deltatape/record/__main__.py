"""A worker of `deltatape record --workers N`: started by `workers.Workers`."""

from deltatape.record.worker import main

main()
