"""dbt's commands and switches, on mirrored tables."""

from __future__ import annotations

import shutil

import pytest

from tests.functional.project import Project


def published(project: Project) -> set[str]:
    """The table folders that have data files, without the schema that the test was given."""
    files = project.landing_zone.glob("*.schema/*/*.parquet")
    return {
        f"{file.parent.parent.name.removeprefix(project.schema)}/{file.parent.name}"
        for file in files
    }


@pytest.mark.core
def test_with_fail_fast_no_table_is_left_half_published(project: Project) -> None:
    project.model("select nothing as id", "bad")
    for number in range(4):
        project.model(f"select {number} as id", f"other_{number}", unique_key="id")

    project.fail("--fail-fast")
    if not project.is_remote:  # a server may not have stopped yet
        project.assert_tidy()

    project.model("select 1 as id", "bad")
    project.run()
    project.assert_tidy()
    for table in ("bad", *(f"other_{number}" for number in range(4))):
        assert len(project.files(table)) == 1
        project.assert_mirrored(table)


@pytest.mark.usefixtures("manifest_file")
def test_with_defer_a_model_reads_what_another_target_has(project: Project) -> None:
    project.model("select 1 as id, 'production' as origin", "customers", unique_key="id")
    project.model("select * from {{ ref('customers') }}", unique_key="id")
    project.run("--select", "customers")
    shutil.copytree(project.path / "target", project.path / "production")
    project.target["schema"] = f"{project.schema}_dev"
    project.write_project()

    project.run("--select", "orders", "--defer", "--state", str(project.path / "production"))

    assert published(project) == {".schema/customers", "_dev.schema/orders"}
    production, project.schema = project.schema, f"{project.schema}_dev"
    assert dict(*project.relation()) == {"id": "int 1", "origin": "str production"}
    project.assert_mirrored()
    project.schema = production
