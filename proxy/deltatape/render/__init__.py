"""Output for people (text, HTML, Markdown) and for programs (JSON, JUnit, SARIF).

Pure: values in, text out. Text of a tape is escaped in one place, when lines become text; JSON is
ASCII. Nothing here looks at a terminal: the shell chooses between plain and styled lines.
"""
