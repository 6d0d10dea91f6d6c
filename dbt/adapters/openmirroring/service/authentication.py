"""The identity in Microsoft Fabric, and its tokens for OneLake and for Fabric's REST API."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtConfigError

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


@dataclass(frozen=True)
class Identity:
    """The settings for getting tokens for Fabric.

    Args:
        method: `authentication` in the profile
        tenant_id: the tenant of the service principal or of the Azure CLI account
        client_id: the id of the service principal or of a user-assigned managed identity
        client_secret: the secret of the service principal
        client_certificate_path: the certificate of the service principal, in place of a secret;
            PEM or PKCS12
        token: a token obtained elsewhere
    """

    method: str = "default"
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    client_certificate_path: str | None = None
    token: str | None = field(default=None, repr=False)

    def check(self) -> None:
        """Check that the profile has the settings that this method needs, and no others.

        Raises:
            DbtConfigError: if the method is unknown, lacks a setting, or does not use a given one
        """
        if self.method not in _SETTINGS:
            raise DbtConfigError(
                f"`authentication` is {self.method!r}. Allowed: {', '.join(_SETTINGS)}."
            )
        known = {name for names in _SETTINGS.values() for name in names}
        given = {name for name in known if getattr(self, name)}
        for name in sorted(given.difference(_SETTINGS[self.method])):
            users = [way for way, names in _SETTINGS.items() if name in names]
            raise DbtConfigError(
                f"`{name}` is not used by `authentication: {self.method}`, but by "
                f"{' and '.join(users)}. Remove it, or set another `authentication`."
            )
        if self.method == "token" and not given:
            raise DbtConfigError("`authentication: token` needs the `token`.")
        if self.method == "service_principal":
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


def token_credential(identity: Identity) -> TokenCredential:
    """Return the credential that Azure's clients ask for tokens.

    The credential caches its tokens, so one credential is enough for a run.

    Raises:
        DbtConfigError: if the certificate cannot be used, or the method is `notebook` and dbt
            runs outside of Fabric
    """
    # the import is slow, and a local landing zone does not need it
    from azure import identity as azure

    from dbt.adapters.openmirroring.service import notebook

    tenant, client = identity.tenant_id or "", identity.client_id or ""
    match identity.method:
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
        case "notebook" if not notebook.is_in_fabric():
            raise DbtConfigError(
                "`authentication: notebook` works in a Fabric notebook or Spark job only, and "
                f"this Python has no module {notebook.MODULE}. Run dbt in the notebook with "
                "`dbtRunner`, or set another `authentication`."
            )
        case "notebook":
            return notebook.NotebookCredential()
        case _ if notebook.is_in_fabric():
            # `DefaultAzureCredential` alone finds no identity in a notebook
            return azure.ChainedTokenCredential(
                notebook.NotebookCredential(), azure.DefaultAzureCredential()
            )
    return azure.DefaultAzureCredential()


class GivenToken:
    """A token from the profile, which this package cannot renew."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        from azure.core.credentials import AccessToken

        # the real expiry is unknown; Fabric refuses an expired token
        return AccessToken(self._token, int(time.time()) + 3600)
