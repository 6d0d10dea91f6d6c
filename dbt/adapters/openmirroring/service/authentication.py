"""The identity in Microsoft Fabric, and its tokens for OneLake and for Fabric's REST API."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtConfigError

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, TokenCredential

# the settings in the profile that each way to get tokens uses
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
    """How to get tokens for Fabric.

    Args:
        method: `authentication` in the profile
        tenant_id: of the service principal, or of the account of the Azure CLI
        client_id: of the service principal, or of a user-assigned managed identity
        client_secret: of the service principal
        client_certificate_path: of the service principal, in place of a secret; PEM or PKCS12
        token: obtained elsewhere
    """

    method: str = "default"
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    client_certificate_path: str | None = None
    token: str | None = field(default=None, repr=False)

    def check(self) -> None:
        """Make sure that the profile has the settings that this way needs, and no others.

        Raises:
            DbtConfigError: the way is unknown, lacks a setting, or does not use one
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
    """The object that Azure's clients ask for tokens. It keeps them, so one is enough for a run.

    Raises:
        DbtConfigError: the certificate cannot be read, or dbt runs in no Fabric notebook
    """
    # takes a moment, and a local landing zone needs none of it
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
            # Azure's own finds no identity there
            return azure.ChainedTokenCredential(
                notebook.NotebookCredential(), azure.DefaultAzureCredential()
            )
    return azure.DefaultAzureCredential()


class GivenToken:
    """A token that somebody else has obtained, and renews."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        from azure.core.credentials import AccessToken

        # only Fabric knows when it expires, and says so
        return AccessToken(self._token, int(time.time()) + 3600)
