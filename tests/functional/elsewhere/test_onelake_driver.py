"""Spark has a driver for OneLake: it writes staged files there itself, and dbt only renames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.spark.embedded import start as embedded_spark
from tests.fabric_server import FabricServer
from tests.functional.conftest import SETTINGS
from tests.functional.onelake import publish_to_onelake
from tests.functional.project import Project
from tests.onelake_driver import reachable
from tests.onelake_server import OneLakeServer


@pytest.fixture
def onelake_project(
    server: OneLakeServer, fabric: FabricServer, tmp_path: Path
) -> Iterator[Project]:
    """A project on a Spark of its own: none may have been started in this process."""
    with reachable(server, tmp_path) as settings:
        spark = embedded_spark.start(
            embedded_spark.SparkSetup(tmp_path, SETTINGS | settings)
        ).session
        created = Project(tmp_path / "shop", spark)
        publish_to_onelake(created, server, fabric)
        del created.target["staging_location"]
        created.write_project()
        yield created
        spark.stop()


def test_spark_writes_to_onelake_itself(onelake_project: Project, server: OneLakeServer) -> None:
    onelake_project.model("select id, 'a' as name from range(4)", unique_key="id")
    assert onelake_project.run()["publication"] == "initial"
    onelake_project.assert_mirrored()

    onelake_project.model(
        "select id, if(id < 2, 'b', 'a') as name from range(1, 5)", unique_key="id"
    )
    assert onelake_project.run()["_message"] == "+1 ~1 -1 · #2"
    onelake_project.assert_mirrored()

    onelake_project.model("select id, 1 as number from range(10)", unique_key="id")
    assert onelake_project.run()["publication"] == "rebuild"
    onelake_project.assert_mirrored()

    by_dbt = [request for request in server.requests if "azsdk-python" in agent(request.headers)]
    assert not [r for r in by_dbt if r.body.startswith(b"PAR1")], "no row went through dbt"
    assert any("JDK" in request.headers["x-ms-client-request-id"] for request in server.requests)


def agent(headers: dict[str, str]) -> str:
    return headers.get("user-agent", "")
