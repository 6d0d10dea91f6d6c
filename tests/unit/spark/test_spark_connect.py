"""Spark Connect in the profile."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.exceptions import DbtConfigError
from pyspark.sql.connect.client import DefaultChannelBuilder

from dbt.adapters.openmirroring.credentials import ConnectionMethod, OpenMirroringCredentials
from dbt.adapters.openmirroring.spark import servers


def credentials(**settings: Any) -> OpenMirroringCredentials:
    return OpenMirroringCredentials(
        schema="analytics", landing_zone="landing", method=ConnectionMethod.CONNECT, **settings
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"host": "sc://spark:15002"}, "sc://spark:15002"),
        ({"host": "sc://spark:15002/"}, "sc://spark:15002"),
        ({"host": "sc://spark", "token": "secret"}, "sc://spark/;token=secret"),
        (
            {"host": "sc://spark:443/;user_id=me", "use_ssl": True, "token": "secret"},
            "sc://spark:443/;user_id=me;use_ssl=true;token=secret",
        ),
    ],
)
def test_a_profile_says_where_the_server_is(settings: dict[str, Any], expected: str) -> None:
    assert credentials(**settings).server.connection_string == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs `host: sc://<host>:<port>`, not None"),
        ({"host": "spark:15002"}, "needs `host: sc://<host>:<port>`, not 'spark:15002'"),
        ({"host": "sc://spark/;token=secret"}, "give its token as `token`"),
        ({"host": "sc://spark:s3cret"}, "needs `host: sc://<host>:<port>`"),
        ({"host": "sc://spark:15002;user_id=me"}, "needs `host: sc://<host>:<port>`"),
        ({"host": "sc://spark:15002/path"}, "needs `host: sc://<host>:<port>`"),
        (
            {"host": "sc://spark", "token": "secret", "authentication": "token"},
            "`method: connect` sends the `token` to Spark",
        ),
    ],
)
def test_a_server_that_cannot_be_found_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DbtConfigError, match=message):
        credentials(**settings)


@pytest.mark.parametrize("token", ["YWJj/+ZGVm==", "a;b=c d?e#f%41&é"])
def test_a_token_arrives_whatever_its_characters(token: str) -> None:
    given = credentials(host="sc://spark:15002/;user_id=me%3Bhere", token=token, use_ssl=True)

    read = DefaultChannelBuilder(given.server.connection_string)

    assert (read.token, read.userId, read.secure) == (token, "me;here", True)
    assert read.endpoint == "spark:15002"


@pytest.mark.parametrize(
    "parameters", ["user_id=me;x-key=s3cret==", "user_id=me;s3cret", "a=b;x-key=#s3cret"]
)
def test_a_parameter_that_is_refused_is_not_shown(parameters: str) -> None:
    with pytest.raises(DbtConfigError, match="Parameter 2 after `/;` in `host`") as refused:
        credentials(host=f"sc://spark/;{parameters}")

    assert "s3cret" not in str(refused.value)


def test_a_client_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "pyspark_version", "3.5.8")

    with pytest.raises(DbtConfigError, match=r"needs PySpark 4.0 or newer, and this is 3.5.8"):
        credentials(host="sc://spark:15002")


def test_a_token_is_not_shown() -> None:
    given = credentials(host="sc://spark:15002", token="s3cret")

    assert dict(given.connection_info())["host"] == "sc://spark:15002"
    assert "s3cret" not in str(list(given.connection_info()))
    assert "s3cret" not in repr(given.server)


def test_nobody_waits_long_for_a_server_that_is_not_there() -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        host = f"sc://127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(FailedToConnectError, match=f"answered at {host} within 1 seconds"):
            credentials(host=host, connect_timeout=1).server.wait_for_answer()
