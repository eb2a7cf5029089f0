"""Values for mitmproxy's options that deltatape hands to the mitmproxy it starts."""

import json
from dataclasses import dataclass, field
from typing import cast

from deltatape.mitm.flows import Options
from deltatape.mitm.inherited import (
    CA_FILE,
    CA_FOLDER,
    CLIENT_CERTS,
    PROXY_LOGIN,
    VARIABLE,
    inherit,
    inherited,
)


@dataclass
class Chosen:
    """mitmproxy's options as far as they matter here."""

    ssl_verify_upstream_trusted_ca: str | None = None
    ssl_verify_upstream_trusted_confdir: str | None = None
    client_certs: str | None = None
    upstream_auth: str | None = None
    updates: list[dict[str, str]] = field(default_factory=list)

    def update_known(self, **values: str) -> None:
        """See mitmproxy's `OptManager`."""
        self.updates.append(values)


VALUES = {CA_FILE: "/c.pem", CA_FOLDER: "/c", CLIENT_CERTS: "/me.pem", PROXY_LOGIN: "ann:x"}


def taken(chosen: Chosen, environment: dict[str, str]) -> dict[str, str]:
    inherit(cast("Options", chosen), environment)
    return {name: value for update in chosen.updates for name, value in update.items()}


def test_what_is_handed_on_is_set_and_the_variable_is_gone() -> None:
    environment = {"HOME": "/h", **inherited(VALUES)}
    assert json.loads(environment[VARIABLE]) == VALUES
    assert taken(Chosen(), environment) == VALUES
    assert environment == {"HOME": "/h"}


def test_what_the_user_has_set_stays_with_what_belongs_to_it() -> None:
    theirs = Chosen(ssl_verify_upstream_trusted_ca="/own.pem", upstream_auth="bob:y")
    assert taken(theirs, inherited(VALUES)) == {CLIENT_CERTS: "/me.pem"}


def test_a_mitmproxy_that_deltatape_did_not_start_inherits_nothing() -> None:
    assert taken(Chosen(), {}) == {}
