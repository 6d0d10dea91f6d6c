"""dbt publishes to OneLake, with the URL of production, to a server of the tests."""

from __future__ import annotations

import re

import pytest

from dbt.adapters.openmirroring.landing_zone.onelake import claim as onelake_claim
from tests.functional.project import Project
from tests.onelake_server import TOKEN, OneLakeServer


def assert_mirrored(project: Project, table: str = "orders") -> None:
    """The files in OneLake make the model's rows, and nothing is left half done, here or there."""
    project.assert_mirrored(table)
    assert not [path for path in (project.path / "staging").rglob("*") if path.is_file()]


@pytest.mark.core
def test_loads_changes_and_rebuilds_reach_onelake(
    onelake: Project, server: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as it is in production, so that requests can be counted
    monkeypatch.setattr(onelake_claim, "RENEWAL", 600)
    onelake.model("select id, 'a' as name from range(1000)", unique_key="id")
    assert onelake.run()["publication"] == "initial"
    assert_mirrored(onelake)
    requests = {"load": server.counts()}

    server.requests.clear()
    assert onelake.run()["_message"] == "unchanged · #1"
    requests["unchanged"] = server.counts()

    onelake.model("select id, if(id < 9, 'b', 'a') as name from range(3, 1001)", unique_key="id")
    server.requests.clear()
    assert onelake.run()["_message"] == "+1 ~6 -3 · #2"
    assert_mirrored(onelake)
    requests["changes"] = server.counts()
    # When the command begins, it lists the scratch pad, the landing zone and each schema in it.
    # Before a load it lists the tables.
    totals = {run: sum(counts.values()) for run, counts in requests.items()}
    assert totals == {"load": 23 + 2, "unchanged": 6 + 3, "changes": 19 + 3}, requests

    onelake.run()
    onelake.model("select id, 1 as number from range(10)", unique_key="id")
    assert onelake.run()["publication"] == "rebuild"
    assert_mirrored(onelake)


def test_a_run_whose_token_has_expired_is_finished_as_the_message_says(
    onelake: Project, server: OneLakeServer
) -> None:
    onelake.model("select 1 as id", unique_key="id")
    server.expire_token("rename")

    message = onelake.fail()

    assert "Check `authentication`" in message
    assert "0 of its 1 files are published" in message
    assert server.content(f"_scratchPad/_claim.{onelake.schema}.orders"), "it cannot be deleted"
    server.token = TOKEN
    server.advance(300)  # until the claim expires
    [way_out] = re.findall(r"dbt (run-operation mirror_recover)", message)
    assert onelake.dbt(*way_out.split())
    assert_mirrored(onelake)


@pytest.mark.core
def test_debug_and_operations_work_on_onelake(onelake: Project, server: OneLakeServer) -> None:
    assert onelake.dbt("debug")
    assert server.counts()["rename"] == 1
    onelake.model("select 1 as id", unique_key="id")
    onelake.model("select 1 as id", name="old", unique_key="id")
    onelake.run()
    (onelake.path / "models" / "old.sql").unlink()

    assert onelake.dbt("run-operation", "mirror_status")
    assert onelake.dbt("run-operation", "mirror_recover")
    assert onelake.dbt("run-operation", "mirror_drop_orphans", "--args", "{dry_run: false}")

    assert_mirrored(onelake)
    assert not onelake.folder("old").exists()
    # that is for local landing zones
    assert not onelake.dbt("run-operation", "mirror_replicate")
    server.fail("refused", times=10**6)
    assert not onelake.dbt("debug")
