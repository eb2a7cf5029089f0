"""The files of a captured case, which is a folder."""

BODY, REQUEST, RESPONSE = "body.raw", "request.json", "response.json"
REQUEST_BODY = "request.raw"
FILES = (BODY, REQUEST, RESPONSE, REQUEST_BODY)
"""The files that are read; only the first is required."""
