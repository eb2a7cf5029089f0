"""Values for mitmproxy's options that deltatape hands to the mitmproxy it starts.

By a variable of the environment: everybody on a machine can read a command line, but only its owner
can read a process's environment. The addon takes the variable away, so that nothing which mitmproxy
starts inherits it, and sets the options as it is loaded. What the user has set, after `--` or in
mitmproxy's `config.yaml`, stays.
"""

import json
from collections.abc import Mapping, MutableMapping

from deltatape.mitm.flows import Options

VARIABLE = "DELTATAPE_MITM_OPTIONS"

CA_FILE = "ssl_verify_upstream_trusted_ca"
CA_FOLDER = "ssl_verify_upstream_trusted_confdir"
CLIENT_CERTS = "client_certs"
PROXY_LOGIN = "upstream_auth"

_GROUPS = ((CA_FILE, CA_FOLDER), (CLIENT_CERTS,), (PROXY_LOGIN,))
"""Options that mean something together: who has set one has decided for all of them."""


def inherited(values: Mapping[str, str]) -> dict[str, str]:
    """The variable that hands these options on."""
    return {VARIABLE: json.dumps(dict(values))}


def inherit(options: Options, environment: MutableMapping[str, str]) -> None:
    """Take the variable, if there is one, and set what the user has not set."""
    values: dict[str, str] = json.loads(environment.pop(VARIABLE, "{}"))
    for names in _GROUPS:
        if all(getattr(options, name, None) is None for name in names):
            options.update_known(**{name: values[name] for name in names if name in values})
