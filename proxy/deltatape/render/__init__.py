"""What deltatape says, as text for people and as JSON for programs.

Pure: values in, text out. Text of a tape is escaped in one place, when lines become text; JSON is
ASCII. Nothing here looks at a terminal: the shell chooses between plain and styled lines.
"""
