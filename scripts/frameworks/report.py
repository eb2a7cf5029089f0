"""The type of structured answers."""

from pydantic import BaseModel


class Report(BaseModel):
    """The weather in a city."""

    city: str
    degrees: float
    sunny: bool
    note: str = "none"
