"""`deltatape.yaml`: finds, reads and checks it, and gives commands their defaults.

    record:                          # a command: its options, as its flags are written
      listen: 127.0.0.1:8377
      keep: 2h
      upstream: [corp=https://llm.corp.example]
    upstreams:                       # NAME: URL, for every command that takes upstreams
      corp: https://llm.corp.example
    rules:                           # thresholds; see model/rule_settings.py
      stall: 10s
    app-events:                      # what the application calls its events; see model/app_names.py
      tool-call: [call, invoke]

Strategy: `file` says which file holds, `document` reads YAML into values that know their place,
`settings` gives them a meaning, `defaults` makes click take them below variables and flags. A value
is the text that would follow the flag, so YAML's implicit types (`no` is false, `1:30` is ninety)
do not apply. Every mistake is a `UsageError` with file, line and column.
"""
