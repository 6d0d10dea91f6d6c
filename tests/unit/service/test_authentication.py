"""Tokens for Fabric by the settings of the profile."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trustme
from azure import identity
from azure.core.credentials import TokenCredential
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials
from dbt.adapters.openmirroring.service.authentication import (
    LoginError,
    require_token,
    token_credential,
)

TENANT = "11111111-1111-1111-1111-111111111111"
CLIENT = "22222222-2222-2222-2222-222222222222"
SCOPE = "https://storage.azure.com/.default"
SERVICE_PRINCIPAL = {
    "authentication": "service_principal",
    "tenant_id": TENANT,
    "client_id": CLIENT,
}


def profile(**settings: Any) -> OpenMirroringCredentials:
    given = {"schema": "analytics", "landing_zone": "landing", **settings}
    OpenMirroringCredentials.validate(given)
    return OpenMirroringCredentials.from_dict(given)


@pytest.mark.parametrize(
    ("settings", "credential"),
    [
        ({}, identity.DefaultAzureCredential),
        ({"authentication": "default"}, identity.DefaultAzureCredential),
        ({"authentication": "cli"}, identity.AzureCliCredential),
        ({"authentication": "cli", "tenant_id": TENANT}, identity.AzureCliCredential),
        ({"authentication": "environment"}, identity.EnvironmentCredential),
        ({"authentication": "managed_identity"}, identity.ManagedIdentityCredential),
        (
            {"authentication": "managed_identity", "client_id": CLIENT},
            identity.ManagedIdentityCredential,
        ),
        ({**SERVICE_PRINCIPAL, "client_secret": "s3cret"}, identity.ClientSecretCredential),
    ],
)
def test_each_kind_of_authentication_has_its_credential(
    settings: dict[str, str], credential: type[TokenCredential]
) -> None:
    assert isinstance(token_credential(profile(**settings)), credential)


def test_a_token_that_was_handed_in_is_the_token() -> None:
    credential = token_credential(profile(authentication="token", token="given"))

    assert credential.get_token(SCOPE).token == "given"


@pytest.mark.parametrize("content", ["a certificate", None, "", "no certificate"])
def test_a_certificate_takes_the_place_of_a_secret_or_is_named_if_it_cannot(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "certificate.pem"
    if content == "a certificate":
        issued = trustme.CA().issue_cert("shop", key_type=trustme.KeyType.RSA)
        issued.private_key_and_cert_chain_pem.write_to_path(str(path))
    elif content is not None:
        path.write_text(content)
    given = profile(**SERVICE_PRINCIPAL, client_certificate_path=str(path))

    if content == "a certificate":
        assert isinstance(token_credential(given), identity.CertificateCredential)
    else:
        with pytest.raises(DbtConfigError, match=r"certificate\.pem' cannot be used"):
            token_credential(given)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"authentication": "password"}, "'password'. Allowed: default, cli, environment,"),
        ({"authentication": "SPN"}, "'SPN'. Did you mean `service_principal`?"),
        ({"authentication": "ServicePrincipal"}, "Did you mean `service_principal`?"),
        ({"authentication": "ActiveDirectoryMsi"}, "Did you mean `managed_identity`?"),
        ({"authentication": "CLI"}, "Did you mean `cli`?"),
        ({"authentication": "service_principal"}, "needs `tenant_id` and `client_id`"),
        ({**SERVICE_PRINCIPAL, "client_id": ""}, "needs `client_id`"),
        (SERVICE_PRINCIPAL, "either `client_secret` or `client_certificate_path`"),
        (
            {**SERVICE_PRINCIPAL, "client_secret": "s", "client_certificate_path": "c"},
            "either `client_secret` or `client_certificate_path`",
        ),
        ({"authentication": "cli", "client_secret": "s"}, "but by service_principal"),
        ({"client_id": CLIENT}, "but by managed_identity and service_principal"),
        ({"token": "t"}, "`token` is not used by `authentication: default`, but by token"),
        ({"authentication": "token"}, "needs the `token`"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    settings: dict[str, str], message: str
) -> None:
    with pytest.raises(DbtConfigError, match=message):
        profile(**settings)


def test_the_token_for_a_remote_spark_is_not_one_for_fabric(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the packages that the method needs are not installed
    monkeypatch.setattr("dbt.adapters.spark.connections.ThriftState", object())
    monkeypatch.setattr("dbt.adapters.spark.connections.THttpClient", object())
    monkeypatch.setattr("dbt.adapters.spark.connections.hive", object())
    spark = {"method": "http", "host": "spark.example", "cluster": "c", "token": "of Spark"}

    given = profile(**spark, authentication="cli")
    assert (given.token, given.given) == ("of Spark", set())
    with pytest.raises(DbtConfigError, match="Choose another `authentication`"):
        profile(**spark, authentication="token")


@pytest.mark.parametrize(
    ("settings", "error", "remedy"),
    [
        ({"authentication": "cli"}, "Azure CLI not found on path", "run `az login`"),
        ({"authentication": "environment"}, "EnvironmentCredential", "Set AZURE_TENANT_ID"),
        (
            {**SERVICE_PRINCIPAL, "client_secret": "s"},
            "the name login.microsoftonline.com cannot be resolved",
            "Check the network and the DNS",
        ),
    ],
)
def test_a_failed_login_names_the_method_and_what_it_lacks(
    settings: dict[str, str], error: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror("unknown host")

    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    given = profile(**settings)

    with pytest.raises(LoginError) as failed:
        require_token(token_credential(given), given)

    told = str(failed.value)
    assert f"`authentication: {given.authentication}` gets no token for OneLake" in told
    assert error in told
    assert remedy in told
    assert ("az login" in told) == (given.authentication == "cli")


def test_azure_prints_nothing_about_a_failed_login() -> None:
    failing = (
        "from dbt.adapters.openmirroring.service.authentication import *\n"
        "given = Identity('default')\n"
        "try: require_token(token_credential(given), given)\n"
        "except LoginError: print('no token')"
    )
    # no login of this machine, and no place to ask for one
    env = {**os.environ, "PATH": "", "HOME": "/nowhere", "AZURE_TOKEN_CREDENTIALS": "dev"}

    done = subprocess.run([sys.executable, "-c", failing], env=env, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("no token\n", "")


def test_secrets_are_shown_nowhere() -> None:
    profiles = [
        profile(**SERVICE_PRINCIPAL, client_secret="s3cret", password="s3cret"),
        profile(authentication="token", token="s3cret"),
    ]

    for credentials in profiles:
        assert "s3cret" not in repr(credentials)
        assert "s3cret" not in str(token_credential(credentials))
        # `dbt debug` prints this, and `target` in Jinja has it
        assert "s3cret" not in str(dict(credentials.connection_info()))
