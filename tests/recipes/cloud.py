"""OneLake and Fabric on this machine, for commands in processes of their own.

A command thinks that it is behind a proxy, which leads to servers of the tests. So it runs with
the URLs of production.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from deltalake import DeltaTable

from tests import fabric_server
from tests.delta_tables import content
from tests.fabric_server import Database, FabricServer, answers_of
from tests.functional.onelake import apply
from tests.onelake_driver import proxy
from tests.onelake_server import ITEM, TOKEN, WORKSPACE, OneLakeServer, listening
from tests.recipes.recipe import published

# `az` after a login; it knows nothing else
_AZ = f"""#!/bin/sh
[ "$1 $2" = "account get-access-token" ] || exit 1
echo '{{"accessToken": "{TOKEN}", "expires_on": {2**32}, "tokenType": "Bearer"}}'
"""


class Cloud(OneLakeServer):
    """OneLake with a mirrored database, and Fabric, which applies what is published to it.

    Args:
        folder: has what is in the mirrored database
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder_of_database = folder
        landing_zone = folder / "Files" / "LandingZone"
        landing_zone.mkdir(parents=True)
        self.share(landing_zone)

        def scan() -> list[dict[str, Any]]:
            told = apply(landing_zone)
            self.show_tables(folder / "Tables")
            return told

        self.fabric = FabricServer(page_size=100)
        self.fabric.workspace(WORKSPACE, Database(ITEM.partition(".")[0], scan=scan))

    def published(self) -> dict[str, list[int]]:
        """The numbers of rows in the files of each mirrored table."""
        return published(self._folder_of_database / "Files" / "LandingZone")

    @property
    def amounts(self) -> dict[int, int]:
        """The amount of each mirrored customer, once everything is applied."""
        apply(self._folder_of_database / "Files" / "LandingZone")
        rows = content(DeltaTable(self._folder_of_database / "Tables" / "sales" / "customers"))
        return {row["customer"]: row["amount"] for row in rows.to_pylist()}

    @property
    def changes(self) -> list[str]:
        """The operations that have changed something."""
        return [r.operation for r in self.requests if r.method not in ("GET", "HEAD")]


@dataclass(frozen=True)
class Place:
    """A place from where a command reaches the cloud.

    Args:
        cloud: the servers
        network: variables that lead to the servers
        programs: the folder of `az`, after a login
        identity: variables of a container that has a managed identity
    """

    cloud: Cloud
    network: dict[str, str]
    programs: Path
    identity: dict[str, str]


@contextmanager
def reachable(folder: Path) -> Iterator[Place]:
    """Let processes reach OneLake and Fabric.

    Args:
        folder: for the mirrored database, a certificate and `az`
    """
    authority, certificate, az = trustme.CA(), folder / "ca.pem", folder / "bin" / "az"
    authority.cert_pem.write_to_path(str(certificate))
    az.parent.mkdir()
    az.write_text(_AZ)
    az.chmod(0o755)
    cloud = Cloud(folder / ITEM)
    answers = {fabric_server.HOST: answers_of(cloud.fabric)}
    with listening(cloud, authority, answers) as port, proxy(port) as proxy_port:
        url = f"http://127.0.0.1:{proxy_port}"
        network = {
            "HTTPS_PROXY": url,
            "REQUESTS_CA_BUNDLE": str(certificate),  # of Azure's clients
            "SSL_CERT_FILE": str(certificate),  # of deltalake
        }
        identity = {"IDENTITY_ENDPOINT": f"{url}/token", "IDENTITY_HEADER": "header"}
        yield Place(cloud, network, az.parent, identity)
