"""A mirrored table whose name dbt gives to a view keeps its rows, and a run says so."""

from __future__ import annotations

import re
import shlex

import pytest
from dbt.artifacts.resources.v1.model import ModelConfig

from tests.functional.project import Project
from tests.functional.test_custom_materialization import STRICT

ORDERS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"

VERSIONS = """
models:
  - name: orders
    latest_version: 2
    config: {{latest_version_pointer: {{enabled: true}}}}
    versions:
      - {{v: 1, config: {{alias: {alias}}}}}
      - v: 2
"""

makes_pointers = pytest.mark.skipif(
    "latest_version_pointer" not in ModelConfig.__dataclass_fields__,
    reason="dbt makes a view of the latest version since 1.12",
)


@makes_pointers
@pytest.mark.core
def test_a_table_whose_name_a_view_of_the_latest_version_takes_is_told_until_it_is_dropped(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    (project.path / "models" / "orders.sql").unlink()
    project.model(ORDERS, "orders_v1", unique_key="id")
    # a view is not limited
    project.model(f"{ORDERS} where id = 1", "orders_v2", unique_key="id", max_deleted=0)
    project.write("models/orders.yml", VERSIONS.format(alias="orders"))
    assert "are one table for Spark" in project.stop()
    project.write("models/orders.yml", VERSIONS.format(alias="orders_v1"))
    before = project.state()

    with project.dry_run():
        assert project.run("--select", "orders.v2")["_message"] == "would publish initial +1"
        assert "reports read old rows" in project.stop(*STRICT)
    told = project.stop(*STRICT)

    assert project.state() == before
    folder = f"{project.schema}.schema/orders"
    taken = "model.shop.orders.v2__latest_version_pointer, which has its name now, is a view"
    assert f"No node here publishes {folder} (" in told
    assert taken in told
    assert "OM428" in told
    project.run()
    for table in ("orders_v1", "orders_v2"):
        project.assert_mirrored(table)
    assert project.relation() == project.relation("orders_v2")
    capsys.readouterr()
    assert project.dbt("run-operation", "mirror_status")
    assert taken in capsys.readouterr().out
    [way_out] = re.findall(r"dbt (run-operation \w+)", told)
    assert project.dbt(*shlex.split(way_out))
    [listed] = re.findall(r"^(\S+) .*__latest_version_pointer", capsys.readouterr().out, re.M)
    assert project.dbt(*shlex.split(way_out), "--args", f"{{dry_run: false, table: {listed}}}")
    assert not project.folder().exists()
    project.run(*STRICT)
