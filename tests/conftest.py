"""What all tests start from."""

import signal

from hypothesis import HealthCheck, settings

# A shell starts what it puts into the background, and what nohup guards, without these signals; the
# programs that tests start and interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for each in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(each, signal.SIG_DFL)

# A busy machine is slow, which is no defect of what is tested.
settings.register_profile(
    "deltatape",
    settings(),
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deltatape")
