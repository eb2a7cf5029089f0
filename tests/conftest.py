"""What all tests start from."""

import signal

# A shell starts what it puts into the background, and what nohup guards, without these signals; the
# programs that tests start and interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for each in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(each, signal.SIG_DFL)
