"""Spark Connect: Spark on a server, asked through a client without a JVM."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.exceptions import DbtConfigError
from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.landing_zone.shown import shown_url

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials

_SCHEME = "sc://"


def check_connect(credentials: OpenMirroringCredentials) -> None:
    """Make sure that a profile says how to reach a server.

    Raises:
        DbtConfigError: it does not; or the client is not installed
    """
    host = credentials.host or ""
    if not host.startswith(_SCHEME):
        given = shown_url(host) if host else None
        raise DbtConfigError(f"`method: connect` needs `host: sc://<host>:<port>`, not {given!r}")
    if "token=" in host:
        raise DbtConfigError(
            "`host` is shown by `dbt debug`: give its token as `token` in the profile"
        )
    if not importlib.util.find_spec("grpc"):
        raise DbtConfigError(
            "`method: connect` needs the client of Spark Connect: "
            "pip install 'dbt-openmirroring[connect]'"
        )


def connection_string(credentials: OpenMirroringCredentials) -> str:
    """Where the server is (Spark's documentation, "Client connection string").

    Args:
        credentials: its `host` may have parameters after `/;`
    """
    url, _, parameters = str(credentials.host).partition("/;")
    given = [text for text in parameters.split(";") if text]
    if credentials.use_ssl:
        given.append("use_ssl=true")
    if credentials.token:
        given.append(f"token={credentials.token}")
    return f"{url.rstrip('/')}/;{';'.join(given)}" if given else url


def new_session(credentials: OpenMirroringCredentials) -> SparkSession:
    """A session of its own on the server, to be stopped at its end."""
    return SparkSession.builder.remote(connection_string(credentials)).create()


def check_server(credentials: OpenMirroringCredentials) -> None:
    """Make sure that a server is there: Spark's client would try for ten minutes.

    Raises:
        FailedToConnectError: none is
    """
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with DefaultChannelBuilder(connection_string(credentials)).toChannel() as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=credentials.connect_timeout)
        except grpc.FutureTimeoutError:
            raise FailedToConnectError(
                f"No Spark Connect server answered at {shown_url(str(credentials.host))} within "
                f"{credentials.connect_timeout} seconds. Check `host`, `use_ssl` and "
                "`connect_timeout` in the profile, and that the server runs."
            ) from None
