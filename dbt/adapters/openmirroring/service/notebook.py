"""Tokens from the Fabric notebook or Spark job in which dbt runs.

The rules come from Fabric's documentation "NotebookUtils credentials utilities for Fabric".
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from typing import Any

import jwt
from azure.core.credentials import AccessToken
from azure.identity import CredentialUnavailableError

from dbt.adapters.openmirroring.rest import scopes
from dbt.adapters.openmirroring.text.shown import shown

MODULE = "notebookutils"

# Azure's clients pass a scope; `getToken` takes the short name of an audience
_AUDIENCES = {scopes.STORAGE: "storage", scopes.FABRIC: "pbi"}

# The assumed seconds until a token expires that does not say when. Azure's clients ask for a new
# token five minutes before the old one expires, so with this value they ask after five minutes.
_UNKNOWN_LIFETIME = 600


def is_in_fabric() -> bool:
    """Check whether this Python has the module that Fabric adds in notebooks and Spark jobs."""
    return MODULE in sys.modules or importlib.util.find_spec(MODULE) is not None


class NotebookCredential:
    """A source of tokens for the identity that a notebook or Spark job runs as."""

    def get_token(self, *scopes: str, **_options: Any) -> AccessToken:
        """Get a token. Azure's clients cache it, and ask again shortly before it expires.

        Args:
            scopes: one scope, that of Azure Storage or that of Fabric's REST API

        Raises:
            CredentialUnavailableError: if Fabric gives no token
        """
        audience = _AUDIENCES.get(scopes[0] if scopes else "")
        if not audience:
            raise CredentialUnavailableError(
                f"The module {MODULE} has no token for {', '.join(scopes)}."
            )
        try:
            token = importlib.import_module(MODULE).credentials.getToken(audience)
        # The errors of `getToken` are not documented. Outside of Fabric another module may have
        # the same name.
        except Exception as error:
            raise CredentialUnavailableError(
                f"{MODULE}.credentials.getToken({audience!r}) failed: {shown(error)}"
            ) from error
        if not token or not isinstance(token, str):
            raise CredentialUnavailableError(
                f"{MODULE}.credentials.getToken({audience!r}) returned no token."
            )
        return AccessToken(token, _expires_on(token))


def _expires_on(token: str) -> int:
    """Return when a token expires, in seconds since 1970: its claim `exp`, as documented.

    The documentation says neither how long a token is valid, nor that every token is a JWT.
    """
    try:
        return int(jwt.decode(token, options={"verify_signature": False})["exp"])
    except (jwt.InvalidTokenError, LookupError, TypeError, ValueError):
        return int(time.time()) + _UNKNOWN_LIFETIME
