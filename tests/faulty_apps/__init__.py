"""Small apps, or wires, with one fault each, and the same with the fault repaired.

Run one by `python -m faulty_apps NAME`, or `NAME-healthy`. scripts/tape-apps keeps the tapes in
recordings/faults; tests/test_odd_apps.py says which finding tells each fault.
"""
