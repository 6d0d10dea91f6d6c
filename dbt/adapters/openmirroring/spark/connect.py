"""Spark Connect: a client without a JVM for a Spark on a server."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field

from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.exceptions import DbtConfigError
from pyspark.sql import SparkSession

_SCHEME = "sc://"


@dataclass(frozen=True)
class Server:
    """A Spark Connect server.

    Args:
        url: `sc://<host>:<port>`, which may have parameters after `/;`
        shown_url: the URL without secrets, for messages
        token: the token that the client sends to the server
        use_ssl: whether to encrypt the connection
        timeout: the seconds to wait until the server answers
    """

    url: str = field(repr=False)
    shown_url: str
    token: str | None = field(default=None, repr=False)
    use_ssl: bool = False
    timeout: int = 0

    def check(self) -> None:
        """Make sure that the profile says how to reach the server.

        Raises:
            DbtConfigError: if `host` is not valid or has a token, or the client is not installed
        """
        if not self.url.startswith(_SCHEME):
            given = self.shown_url or None
            raise DbtConfigError(
                f"`method: connect` needs `host: sc://<host>:<port>`, not {given!r}"
            )
        if "token=" in self.url:
            raise DbtConfigError(
                "`host` is shown by `dbt debug`: give its token as `token` in the profile"
            )
        if not importlib.util.find_spec("grpc"):
            raise DbtConfigError(
                "`method: connect` needs the client of Spark Connect: "
                "pip install 'dbt-openmirroring[connect]'"
            )

    @property
    def connection_string(self) -> str:
        """The connection string (Spark's documentation, "Client connection string")."""
        url, _, parameters = self.url.partition("/;")
        given = [text for text in parameters.split(";") if text]
        if self.use_ssl:
            given.append("use_ssl=true")
        if self.token:
            given.append(f"token={self.token}")
        return f"{url.rstrip('/')}/;{';'.join(given)}" if given else url

    def new_session(self) -> SparkSession:
        """Open a new session on the server. The caller must stop it."""
        return SparkSession.builder.remote(self.connection_string).create()

    def wait_for_answer(self) -> None:
        """Make sure that the server runs. Spark's client alone would retry for ten minutes.

        Raises:
            FailedToConnectError: if the server does not answer in time
        """
        import grpc
        from pyspark.sql.connect.client import DefaultChannelBuilder

        with DefaultChannelBuilder(self.connection_string).toChannel() as channel:
            try:
                grpc.channel_ready_future(channel).result(timeout=self.timeout)
            except grpc.FutureTimeoutError:
                raise FailedToConnectError(
                    f"No Spark Connect server answered at {self.shown_url} within {self.timeout} "
                    "seconds. Check `host`, `use_ssl` and `connect_timeout` in the profile, and "
                    "that the server runs."
                ) from None
