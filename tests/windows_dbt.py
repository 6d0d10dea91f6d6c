"""dbt under Wine, and Fabric on a port of this machine: PORT, CERTIFICATE, dbt's arguments."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import urllib3.util.connection
from azure.core.pipeline.transport import RequestsTransport
from dbt.cli.main import cli

from dbt.adapters.openmirroring.landing_zone.onelake import storage as onelake_storage
from dbt.adapters.openmirroring.rest import azure_requests


def main() -> None:
    port, certificate = int(sys.argv[1]), sys.argv[2]
    connect = urllib3.util.connection.create_connection

    def connect_here(address: tuple[str, int], *args: Any, **options: Any) -> Any:
        is_fabric = address[0].endswith(".fabric.microsoft.com")
        return connect(("127.0.0.1", port) if is_fabric else address, *args, **options)

    urllib3.util.connection.create_connection = connect_here
    transport = partial(RequestsTransport, connection_verify=certificate)
    for module in (onelake_storage, azure_requests):
        vars(module)["RequestsTransport"] = transport
    cli(sys.argv[3:])


if __name__ == "__main__":
    main()
