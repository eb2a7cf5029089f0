"""Run the recorder inside mitmproxy, for applications without a configurable base URL.

In mitmproxy: `addon` is the file that it loads, `recorder` has the hooks, `run` tapes exchanges,
`hosts` selects the hosts, `flows` describes mitmproxy's objects, `addon_log` sends messages, and
`run_session` has the tapes analysed, or leaves that to deltatape.

In deltatape: `session` is a session of `record` whose `recording` is a mitmproxy; `mitmdump` runs
it as a child process, `environment` makes its environment and that of the application. `ipc` is the
protocol between the two sides.

Invariant: what `addon` imports needs nothing but the standard library, since the mitmproxy that
loads it may live in an environment of its own.
"""
