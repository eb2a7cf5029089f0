"""The paths of Amazon Bedrock: model and action, `/model/MODEL/ACTION`, perhaps behind a prefix.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html.
"""

from typing import NamedTuple
from urllib.parse import unquote


class BedrockPath(NamedTuple):
    """What the path of a request says."""

    model: str | None
    """None if it names none. May be an ARN with slashes, escaped or not."""
    action: str
    """Its last part."""


def read_path(path: str) -> BedrockPath:
    """What `path`, without query, says."""
    head, _, action = path.rstrip("/").rpartition("/")
    return BedrockPath(model=unquote(head.partition("/model/")[2]) or None, action=action)
