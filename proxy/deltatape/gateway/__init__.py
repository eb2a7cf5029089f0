"""The gateway: passes requests and responses through, and tapes every byte, boundary and ending.

`gateway` listens and forwards each exchange, `routes` says where a request goes, `access` who may
ask, `dial` opens upstream connections as `outbound` configures. `recorder` has what all listeners
of a run share, `tapes` its tapes; `analysis` checks each exchange that has ended. `tunnel` watches
what an application sends past the gateway.
"""
