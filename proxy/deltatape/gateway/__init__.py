"""The gateway: passes requests and responses through, and tapes every byte, boundary and ending.

`routes` says where a request goes, `access` who may ask, `dial` opens upstream connections,
`forward` carries one exchange, `gateway` holds them together, `analysis` reads what was taped.
"""
