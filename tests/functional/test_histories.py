"""Histories that nobody thought of: the replica equals the model whatever happened before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dbt.adapters.openmirroring.replicator import Replicator
from tests.functional.project import Project

pytestmark = pytest.mark.slow

# of the column `value`, which may also be missing
TYPES = (None, "int", "bigint", "string", "double", "decimal(9, 2)", "timestamp_ntz")
PROCESSED = ("_ProcessedFiles", "_FilesReadyToDelete")


@dataclass(frozen=True)
class Step:
    """One run, and what the service does after it.

    Args:
        rows: key, text and number; keys of keyless tables may repeat
        keyed: whether there is a `unique_key`
        value_type: of a third column
        full_refresh: asked for by the user
        scanned: into which folder applied files go; None: the service sleeps
        purged: whether the service then deletes what it has applied
    """

    rows: dict[int, tuple[str | None, int | None]]
    keyed: bool
    value_type: str | None
    full_refresh: bool
    scanned: str | None
    purged: bool

    @property
    def sql(self) -> str:
        values = [
            f"({key}, {'null' if text is None else repr(text)}, {'null' if n is None else n})"
            for key, (text, n) in self.rows.items()
        ] or ["(0, '', 0)"]
        columns = "id, cast(name as string) as name"
        if self.value_type == "timestamp_ntz":
            columns += ", cast(timestamp_seconds(cast(value as int)) as timestamp_ntz) as value"
        elif self.value_type:
            columns += f", cast(value as {self.value_type}) as value"
        where = "" if self.rows else " where false"
        return f"select {columns} from values {', '.join(values)} as t(id, name, value){where}"

    @property
    def config(self) -> dict[str, Any]:
        # small files, so that batches have several
        return {"target_file_size": "1kb", **({"unique_key": "id"} if self.keyed else {})}


texts = st.one_of(st.none(), st.sampled_from(["", "a", "b", "long text " * 40]))
numbers = st.one_of(st.none(), st.integers(-3, 3))
steps = st.builds(
    Step,
    rows=st.dictionaries(st.integers(0, 12), st.tuples(texts, numbers), max_size=12),
    # most steps change rows only: a table that is always rebuilt shows little
    keyed=st.sampled_from([True, True, True, False]),
    value_type=st.sampled_from(["int", "int", "int", *TYPES]),
    full_refresh=st.sampled_from([False] * 5 + [True]),
    scanned=st.sampled_from([*PROCESSED, PROCESSED[0], None]),
    purged=st.booleans(),
)


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    # an example takes seconds, and each is short already
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(are_large=st.booleans(), history=st.lists(steps, min_size=3, max_size=8))
def test_the_replica_equals_the_model_after_each_step(
    new_project: Callable[[Path], Project],
    tmp_path_factory: pytest.TempPathFactory,
    are_large: bool,
    history: list[Step],
) -> None:
    project = new_project(tmp_path_factory.mktemp("history"))
    if are_large:
        project.take_tables_for_large()
    try:
        for step in history:
            project.model(step.sql, **step.config)
            project.run(*(["--full-refresh"] if step.full_refresh else []))
            if step.scanned:
                assert_replicated(project, step.scanned)
            if step.purged:
                for processed in PROCESSED:
                    shutil.rmtree(project.folder() / processed, ignore_errors=True)
        assert_replicated(project, PROCESSED[0])
        assert project.run()["publication"] == "unchanged"
        assert_replicated(project, PROCESSED[0])
    finally:
        project.drop_schemas(project.schema)
        shutil.rmtree(project.path)


def assert_replicated(project: Project, processed: str) -> None:
    (report,) = Replicator(Path(project.landing_zone), processed).scan()
    assert not report.note, report.note
    project.assert_mirrored()
