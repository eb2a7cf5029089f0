"""Run the recorder inside mitmproxy, for applications without a configurable base URL.

In mitmproxy: `addon` is the file that it loads, `recorder` has the hooks, `run` tapes exchanges,
`hosts` says of which hosts, `flows` describes mitmproxy's objects, `addon_log` sends messages, and
`live_analysis` finds defects while taping.

In deltatape: `mitmdump` runs mitmproxy as a child process, `environment` makes the environments of
mitmproxy and of the application, `session` runs both. `ipc` is the protocol between the two sides.

Invariant: what `addon` imports needs nothing but the standard library, since the mitmproxy that
loads it may live in an environment of its own.
"""
