"""The identity in Microsoft Fabric, and its tokens for OneLake and for Fabric's REST API.

The tokens of a notebook are as in Fabric's documentation "NotebookUtils credentials utilities for
Fabric". Azure's packages are slow to import, and a local landing zone does not need them.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import re
import sys
import time
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.rest import scopes
from dbt.adapters.openmirroring.text.errors import RunError
from dbt.adapters.openmirroring.text.shown import shown

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, TokenCredential

# the settings in the profile that each authentication method uses
_SETTINGS = {
    "default": (),
    "cli": ("tenant_id",),
    "environment": (),
    "managed_identity": ("client_id",),
    "service_principal": ("tenant_id", "client_id", "client_secret", "client_certificate_path"),
    "notebook": (),
    "token": ("token",),
}

# what to do if the login of a method fails
_LOGINS = {
    "default": "Run `az login`, or set the `authentication` that this machine has",
    "cli": "Install the Azure CLI if it is missing, and run `az login`",
    "environment": "Set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET",
    "managed_identity": "Give this machine the identity, and check `client_id` if it has one",
    "service_principal": "Check `tenant_id`, `client_id`, and the secret or certificate",
    "notebook": "Start the notebook again",
    "token": "Get a new `token`",
}

# other names of the methods, among them those of other adapters for Fabric
_OTHER_NAMES = {
    "spn": "service_principal",
    "msi": "managed_identity",
    "az": "cli",
    "azcli": "cli",
    "azurecli": "cli",
    "auto": "default",
    "env": "environment",
    "fabricnotebook": "notebook",
    "accesstoken": "token",
}

# the module that Fabric adds in notebooks and Spark jobs
_NOTEBOOK = "notebookutils"

# Azure's clients pass a scope; `getToken` takes the short name of an audience
_AUDIENCES = {scopes.STORAGE: "storage", scopes.FABRIC: "pbi"}

# The assumed seconds until a token of a notebook expires, since Fabric does not document when.
# Azure's clients ask for a new token five minutes before, so with this value after five minutes.
_LIFETIME = 600


class LoginError(RunError):
    """The identity cannot log in to Microsoft Entra."""


@dataclass
class Identity:
    """The settings of a profile for getting tokens for Fabric.

    Args:
        authentication: how to get tokens: `default` (the first of the others that works), `cli`,
            `environment`, `managed_identity`, `service_principal`, `notebook` or `token`
        tenant_id: the tenant of the service principal, or of the account of the Azure CLI
        client_id: the id of the service principal, or of a user-assigned managed identity
        client_certificate_path: the certificate of the service principal, instead of a secret;
            PEM or PKCS12
        token: a token for OneLake from elsewhere; or a token for Spark, if `method` uses one
    """

    authentication: str = "default"
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    client_certificate_path: str | None = None
    token: str | None = field(default=None, repr=False)

    @property
    def given(self) -> set[str]:
        """The names of the settings that are given for a login."""
        known = {name for names in _SETTINGS.values() for name in names}
        return {name for name in known if getattr(self, name)}

    def check_identity(self) -> None:
        """Check that the profile has the settings that this method needs, and no others.

        Raises:
            DbtConfigError: if the method is unknown, lacks a setting, or does not use a given one
        """
        if self.authentication not in _SETTINGS:
            raise DbtConfigError(
                f"`authentication` is {self.authentication!r}. {_meant(self.authentication)}"
                f"Allowed: {', '.join(_SETTINGS)}."
            )
        given = self.given
        for name in sorted(given.difference(_SETTINGS[self.authentication])):
            users = [way for way, names in _SETTINGS.items() if name in names]
            raise DbtConfigError(
                f"`{name}` is not used by `authentication: {self.authentication}`, but by "
                f"{' and '.join(users)}. Remove it, or set another `authentication`."
            )
        if self.authentication == "token" and not given:
            raise DbtConfigError("`authentication: token` needs the `token`.")
        if self.authentication == "service_principal":
            missing = [name for name in ("tenant_id", "client_id") if name not in given]
            if missing:
                raise DbtConfigError(
                    f"`authentication: service_principal` needs `{'` and `'.join(missing)}`."
                )
            if len(given & {"client_secret", "client_certificate_path"}) != 1:
                raise DbtConfigError(
                    "`authentication: service_principal` needs either `client_secret` or "
                    "`client_certificate_path`."
                )


def _meant(method: str) -> str:
    """Return a question for the method that was meant; empty if that is unknown."""
    name = re.sub(r"[^a-z]", "", method.lower()).removeprefix("activedirectory")
    names = {way.replace("_", ""): way for way in _SETTINGS} | _OTHER_NAMES
    close = get_close_matches(name, names, n=1, cutoff=0.7)
    return f"Did you mean `{names[close[0]]}`? " if close else ""


def token_credential(identity: Identity) -> TokenCredential:
    """Return the credential that Azure's clients ask for tokens.

    The credential caches its tokens, so one credential is enough for a run.

    Raises:
        DbtConfigError: if the certificate cannot be used, or the method is `notebook` and dbt
            runs outside of Fabric
    """
    from azure import identity as azure

    # it logs each failed attempt, of which an error of ours tells in a sentence
    logging.getLogger("azure.identity").addHandler(logging.NullHandler())
    tenant, client = identity.tenant_id or "", identity.client_id or ""
    match identity.authentication:
        case "cli":
            return azure.AzureCliCredential(tenant_id=tenant)
        case "environment":
            return azure.EnvironmentCredential()
        case "managed_identity":
            return azure.ManagedIdentityCredential(client_id=client or None)
        case "service_principal" if identity.client_certificate_path:
            path = Path(identity.client_certificate_path).expanduser()
            try:
                return azure.CertificateCredential(tenant, client, str(path))
            except (OSError, ValueError) as error:
                raise DbtConfigError(
                    f"`client_certificate_path` {str(path)!r} cannot be used: {error}. It must be "
                    "a PEM or PKCS12 file with the certificate and its private key, without a "
                    "password."
                ) from None
        case "service_principal":
            return azure.ClientSecretCredential(tenant, client, identity.client_secret or "")
        case "token":
            return GivenToken(identity.token or "")
        case "notebook" if not _is_in_fabric():
            raise DbtConfigError(
                "`authentication: notebook` works in a Fabric notebook or Spark job only, and "
                f"this Python has no module {_NOTEBOOK}. Run dbt in the notebook with "
                "`dbtRunner`, or set another `authentication`."
            )
        case "notebook":
            return NotebookCredential()
        case _ if _is_in_fabric():
            # `DefaultAzureCredential` alone finds no identity in a notebook
            return azure.ChainedTokenCredential(
                NotebookCredential(), azure.DefaultAzureCredential()
            )
    return azure.DefaultAzureCredential()


def require_token(credential: TokenCredential, identity: Identity) -> None:
    """Check that the identity can log in.

    Raises:
        LoginError: if there is no token for OneLake
    """
    from azure.core.exceptions import AzureError

    from dbt.adapters.openmirroring.rest.azure_requests import reason, unresolved_host

    try:
        credential.get_token(scopes.STORAGE)
    except AzureError as error:
        remedy = _LOGINS[identity.authentication]
        if unresolved_host(error):
            remedy = "Check the network and the DNS of this machine"
        raise LoginError(
            f"`authentication: {identity.authentication}` gets no token for OneLake: "
            f"{reason(error)} {remedy}, then run again.",
            code="OM701",
        ) from None


class GivenToken:
    """A token from the profile, which this package cannot renew."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        from azure.core.credentials import AccessToken

        # the real expiry is unknown; Fabric refuses an expired token
        return AccessToken(self._token, int(time.time()) + 3600)


def _is_in_fabric() -> bool:
    return _NOTEBOOK in sys.modules or importlib.util.find_spec(_NOTEBOOK) is not None


class NotebookCredential:
    """A source of tokens for the identity that a notebook or Spark job runs as."""

    def get_token(self, *scopes: str, **_options: Any) -> AccessToken:
        """Get a token. Azure's clients cache it, and ask again after five minutes.

        Args:
            scopes: one scope, that of Azure Storage or that of Fabric's REST API

        Raises:
            CredentialUnavailableError: if Fabric gives no token
        """
        from azure.core.credentials import AccessToken
        from azure.identity import CredentialUnavailableError

        audience = _AUDIENCES.get(scopes[0] if scopes else "")
        if not audience:
            raise CredentialUnavailableError(
                f"The module {_NOTEBOOK} has no token for {', '.join(scopes)}."
            )
        try:
            token = importlib.import_module(_NOTEBOOK).credentials.getToken(audience)
        # The errors of `getToken` are not documented. Outside of Fabric another module may have
        # the same name.
        except Exception as error:
            raise CredentialUnavailableError(
                f"{_NOTEBOOK}.credentials.getToken({audience!r}) failed: {shown(error)}"
            ) from error
        if not token or not isinstance(token, str):
            raise CredentialUnavailableError(
                f"{_NOTEBOOK}.credentials.getToken({audience!r}) returned no token."
            )
        return AccessToken(token, int(time.time()) + _LIFETIME)
