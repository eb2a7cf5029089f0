"""Record and pass through: every byte, boundary and ending of a stream, taped on its way.

`routes` says where a request goes, `access` who may ask, `dial` opens upstream connections,
`forward` carries one exchange, `gateway` holds them together, `analysis` reads what was taped.
"""
