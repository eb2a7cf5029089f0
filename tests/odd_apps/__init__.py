"""Small apps that are odd but right, each a program of its own: `python -m odd_apps NAME`.

Each does exactly what its author meant it to do. scripts/tape-apps runs them through
`deltatape record` against the scripted provider of provider.py and keeps the tapes in
recordings/apps; tests/test_odd_apps.py says that none of them is accused.
"""
