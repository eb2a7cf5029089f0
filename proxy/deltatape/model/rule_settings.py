"""The thresholds of the rules, with their defaults.

They include the names that an application gives its events.
"""

from dataclasses import dataclass

from deltatape.model.app_names import CONTRACT, AppNames

PHRASES = (
    # greetings
    "hi",
    "hi there",
    "hello",
    "hello there",
    "hey",
    "hey there",
    "good morning",
    "good afternoon",
    "good evening",
    "nice to meet you",
    "hallo",
    "guten tag",
    "guten morgen",
    "guten abend",
    "bonjour",
    "bonsoir",
    "salut",
    "hola",
    "buenos dias",
    "buenas tardes",
    "ciao",
    "buongiorno",
    "ola",
    "bom dia",
    # thanks
    "thanks",
    "thanks a lot",
    "thanks so much",
    "thanks a bunch",
    "thanks again",
    "thanks for everything",
    "thanks for your help",
    "many thanks",
    "thx",
    "thank you",
    "thank you so much",
    "thank you very much",
    "thank you for your help",
    "cheers",
    "much appreciated",
    "i appreciate it",
    "that is all",
    "thats all",
    "that is all i need",
    "thats all i need",
    "thats all i needed",
    "thats all for now",
    "thats all for today",
    "that will be all",
    "danke",
    "danke schon",
    "vielen dank",
    "das ist alles",
    "merci",
    "merci beaucoup",
    "gracias",
    "muchas gracias",
    "grazie",
    "grazie mille",
    "obrigado",
    "obrigada",
    "dank je",
    "bedankt",
    "you are welcome",
    "youre welcome",
    # farewells
    "bye",
    "bye bye",
    "bye for now",
    "goodbye",
    "good bye",
    "good night",
    "see you",
    "see you later",
    "see you soon",
    "see you tomorrow",
    "see ya",
    "cya",
    "take care",
    "have a nice day",
    "have a good day",
    "have a great day",
    "have a nice weekend",
    "talk to you later",
    "farewell",
    "tschuss",
    "auf wiedersehen",
    "bis bald",
    "schonen tag noch",
    "au revoir",
    "a bientot",
    "bonne journee",
    "adios",
    "hasta luego",
    "arrivederci",
    "tchau",
    "tot ziens",
    "doei",
)
"""Phrases of small talk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The thresholds that the rules measure against. Durations are in seconds."""

    stall_s: float = 10.0
    """D001: a time without progress that is worth a warning."""
    stall_error_s: float = 60.0
    """D001: from here on it is an error: common idle timeouts of clients and proxies have fired."""
    burst_events: int = 30
    """W007: fewer events than this are no burst."""
    burst_wait_s: float = 2.0
    """W007: the silence before a burst."""
    burst_share: float = 0.02
    """W007: the events' own duration, as a share of the silence before them."""
    unanswered_s: float = 30.0
    """D003: how long calls may stay unanswered; most tools are quicker."""
    unanswered_error_s: float = 300.0
    """D003: from here on it is an error if the application lived on: few tools run that long."""
    after_result_s: float = 10.0
    """D004: how long nothing may come after a tool's result."""
    slow_client_s: float = 1.0
    """D005: how far the client may lag behind the upstream."""
    schema_steps: int = 20_000
    """T008: keyword applications before validation gives up on a schema."""
    schema_characters: int = 200_000
    """T008: larger arguments or schemas are not validated."""
    loop_calls: int = 3
    """C006: this many equal calls since the user last spoke are a loop."""
    loop_turns: int = 10
    """C006: this many replies in a row that call tools without text for the user are one, too."""
    small_talk_words: int = 12
    """C007: a longer message is no small talk."""
    small_talk: tuple[str, ...] = PHRASES
    """C007: the phrases that small talk is made of."""
    retries: int = 5
    """C008: this many attempts of the same request in a row are a storm."""
    retries_time_s: float = 60.0
    """C008: the time within which they come."""
    app_error_s: float = 10.0
    """C009: how long after a reply a printed error may be about its calls."""
    app: AppNames = CONTRACT
    """The application's names for the events of its own endpoint, which the dialect needs."""


DEFAULTS = Settings()
