"""Spark's own driver for OneLake, and a way for it to reach the server of the tests.

The JVM thinks that it is behind a proxy; that leads what is for OneLake to this machine, and hands
out tokens.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

from dbt.adapters.openmirroring.spark.embedded.settings import find_java_home
from tests.onelake_server import TOKEN, OneLakeServer, listening, serving

# of the Hadoop that PySpark 4.3 has
PACKAGE = "org.apache.hadoop:hadoop-azure:3.5.0"

_PASSWORD = "changeit"


@contextmanager
def reachable(server: OneLakeServer, folder: Path) -> Iterator[dict[str, str]]:
    """Let a Spark reach the server by OneLake's URL.

    Args:
        folder: for certificates

    Yields:
        settings of that Spark
    """
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    keytool = Path(find_java_home(folder / "java")) / "bin" / "keytool"
    command = [str(keytool), "-importcert", "-noprompt", "-alias", "tests", "-storetype", "PKCS12"]
    command += ["-file", f"{folder}/ca.pem", "-keystore", f"{folder}/trust"]
    subprocess.run([*command, "-storepass", _PASSWORD], check=True, capture_output=True)
    with listening(server, authority) as port, proxy(port) as proxy_port:
        yield {
            "spark.jars.packages": PACKAGE,
            "spark.driver.defaultJavaOptions": (
                f"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={proxy_port} "
                f"-Djavax.net.ssl.trustStore={folder}/trust "
                f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}"
            ),
            "spark.hadoop.fs.azure.account.auth.type": "OAuth",
            "spark.hadoop.fs.azure.account.oauth.provider.type": (
                "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
            ),
            "spark.hadoop.fs.azure.account.oauth2.client.endpoint": (
                f"http://127.0.0.1:{proxy_port}/token"
            ),
            "spark.hadoop.fs.azure.account.oauth2.client.id": "client",
            "spark.hadoop.fs.azure.account.oauth2.client.secret": "secret",
            "spark.hadoop.fs.azure.account.hns.enabled": "true",
            # the library that knows the JVM's proxy and certificates
            "spark.hadoop.fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
            "spark.hadoop.fs.azure.ssl.channel.mode": "Default_JSSE",
        }


@contextmanager
def proxy(upstream: int) -> Iterator[int]:
    """A proxy that leads whoever it is asked for to a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def do_GET(self) -> None:
            answer = {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}
            # as the managed identity of a container tells it
            answer["expires_on"] = 2**32
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_CONNECT(self) -> None:
            with socket.create_connection(("127.0.0.1", upstream)) as server:
                self.send_response(200)
                self.end_headers()
                ends = {server: self.connection, self.connection: server}
                while True:
                    for ready in select.select(list(ends), [], [])[0]:
                        data = ready.recv(2**16)
                        if not data:
                            return
                        ends[ready].sendall(data)

        def log_message(self, *_args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    with serving(http) as port:
        yield port
