"""Run the recorder inside mitmproxy, for applications without a configurable base URL.

`addon` is the file that mitmproxy loads, `recorder` its hooks, `passage` one exchange, `hosts` what
is taped at all, `flows` what is used of mitmproxy and how an exchange ended there, `voice` what is
said about one and to whom, `talk` how the addon and the deltatape that started it talk.

`mitmdump` is mitmproxy as a process of ours, `environment` what leads an application through it,
`session` runs a command behind it.

Invariant: what `addon` imports needs nothing but the standard library, since the mitmproxy that
loads it may live in an environment of its own.
"""
