"""Fake credentials, and how programs write them."""

import json
import re
from urllib.parse import quote, quote_plus

from hypothesis import strategies as st

PLAIN = "abcXYZ019-_."
ODD = "+/=\"\\'<>&%~!ñ€ "

credentials = st.builds(
    lambda start, rest, end: f"sk-fake0{start}{rest}{end}",
    st.sampled_from(PLAIN),
    st.text(PLAIN, max_size=6) | st.text(PLAIN + ODD, max_size=8),
    st.sampled_from(PLAIN),
)
"""Ten characters and more, never a word; most with characters that encoders escape."""


def spelled(credential: str) -> list[str]:
    """A credential as programs write it: plain, in JSON, in JSON in JSON, in a URL."""
    ascii_json, plain_json = (
        json.dumps(credential, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)
    )
    return [
        credential,
        ascii_json,
        plain_json,
        plain_json.replace("/", "\\/"),
        ascii_json.replace("/", "\\/"),
        re.sub("[<>&'+]", lambda char: f"\\u{ord(char.group()):04X}", plain_json),
        ascii_json.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        json.dumps(plain_json)[1:-1],
        quote(credential),
        quote(credential, safe=""),
        quote_plus(credential),
        re.sub("%..", lambda code: code.group().lower(), quote(credential, safe="")),
    ]
