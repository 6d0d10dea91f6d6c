"""Several at once: threads, runs, runs that are killed, and the service."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dbt.adapters.openmirroring.replicator.replicator import Replicator
from tests.functional.project import Project

KEYED: dict[str, Any] = {"unique_key": "id", "target_file_size": "4kb"}
ROWS = "select id, sha2(concat(id, '{salt}'), 512) as name from range({first}, {end})"


def test_a_table_is_published_while_the_service_reads_and_cleans(project: Project) -> None:
    ended = threading.Event()
    applied: list[int] = []
    errors: list[str] = []

    def serve() -> None:
        """Apply files, and delete at once what is applied."""
        while not ended.wait(0.05):
            report = Replicator(project.landing_zone).replicate(project.schema, "orders")
            shutil.rmtree(project.folder() / "_ProcessedFiles", ignore_errors=True)
            if report:
                applied.append(report.files)
                errors.extend([str(report.error)] if report.error else [])

    with ThreadPoolExecutor() as pool:
        service = pool.submit(serve)
        try:
            for n in range(9):
                dropped = f", {n} as c{n}" if n % 3 == 2 else ""
                rows = ROWS.format(salt=n, first=n, end=60 + n)
                project.model(f"select *{dropped} from ({rows})", **KEYED)
                project.run()
        finally:
            ended.set()
        service.result()

    project.assert_mirrored()
    assert sum(applied), "it has read something meanwhile"
    assert not errors


@pytest.mark.slow
def test_a_hundred_tables_are_published_by_eight_threads(
    project: Project, record_property: Callable[[str, object], None]
) -> None:
    project.target["threads"] = 8
    project.write_project()
    tables = [f"t{i}" for i in range(100)]
    for salt in ("a", "b"):
        for i, table in enumerate(tables):
            project.model(ROWS.format(salt=salt, first=i, end=100 + i), table, unique_key="id")
        project.run()

    for table in tables:
        project.assert_mirrored(table)
        assert len(project.files(table)) == 2
    record_property("tables published twice by 8 threads", len(tables))
