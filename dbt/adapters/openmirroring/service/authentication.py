"""Who this is to Microsoft Fabric: the tokens for OneLake and for Fabric's REST API."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtConfigError

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, TokenCredential

    from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials

# the settings in the profile that each way uses
_SETTINGS = {
    "default": (),
    "cli": ("tenant_id",),
    "environment": (),
    "managed_identity": ("client_id",),
    "service_principal": ("tenant_id", "client_id", "client_secret", "client_certificate_path"),
    "token": ("token",),
}

# dbt-spark has a `token` too, and sends it to Spark
_SPARK_USES_TOKEN = ("connect", "http", "odbc")


def check_authentication(credentials: OpenMirroringCredentials) -> None:
    """Make sure that the settings of the profile are those that `authentication` needs.

    Raises:
        DbtConfigError: an unknown way, a setting that it lacks, or one that it does not use
    """
    chosen = credentials.authentication
    if chosen not in _SETTINGS:
        raise DbtConfigError(f"`authentication` is {chosen!r}. Allowed: {', '.join(_SETTINGS)}.")
    given = {
        name
        for name in {name for names in _SETTINGS.values() for name in names}
        if getattr(credentials, name)
    }
    if credentials.method in _SPARK_USES_TOKEN:
        if chosen == "token":
            raise DbtConfigError(
                f"`token` is what `method: {credentials.method}` sends to Spark, so it cannot be "
                "the token for Fabric. Choose another `authentication`."
            )
        given.discard("token")
    for name in sorted(given.difference(_SETTINGS[chosen])):
        users = [way for way, names in _SETTINGS.items() if name in names]
        raise DbtConfigError(
            f"`{name}` is not used by `authentication: {chosen}`, but by {' and '.join(users)}. "
            "Remove it, or set another `authentication`."
        )
    if chosen == "token" and not given:
        raise DbtConfigError("`authentication: token` needs the `token`.")
    if chosen == "service_principal":
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


def token_credential(credentials: OpenMirroringCredentials) -> TokenCredential:
    """What Azure's clients ask for tokens. It keeps them, so one is enough for a run.

    Raises:
        DbtConfigError: the certificate cannot be read
    """
    # takes a moment, and a local landing zone needs none of it
    from azure import identity

    tenant, client = credentials.tenant_id or "", credentials.client_id or ""
    match credentials.authentication:
        case "cli":
            return identity.AzureCliCredential(tenant_id=tenant)
        case "environment":
            return identity.EnvironmentCredential()
        case "managed_identity":
            return identity.ManagedIdentityCredential(client_id=client or None)
        case "service_principal" if credentials.client_certificate_path:
            path = Path(credentials.client_certificate_path).expanduser()
            try:
                return identity.CertificateCredential(tenant, client, str(path))
            except (OSError, ValueError) as error:
                raise DbtConfigError(
                    f"`client_certificate_path` {str(path)!r} cannot be used: {error}. It must be "
                    "a PEM or PKCS12 file with the certificate and its private key, without a "
                    "password."
                ) from None
        case "service_principal":
            return identity.ClientSecretCredential(tenant, client, credentials.client_secret or "")
        case "token":
            return GivenToken(credentials.token or "")
    return identity.DefaultAzureCredential()


class GivenToken:
    """A token that somebody else has got, and renews."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        from azure.core.credentials import AccessToken

        # when it really expires Fabric knows, and says so
        return AccessToken(self._token, int(time.time()) + 3600)
