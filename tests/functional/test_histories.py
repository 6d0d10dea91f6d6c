"""Histories that nobody thought of: the replica equals the model whatever happened before."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dbt.adapters.openmirroring.replicator.replicator import Replicator
from tests.functional.fast_paths import OFF, without
from tests.functional.project import Project

# The state machine of unit tests plays new histories each time, without Spark.
pytestmark = pytest.mark.slow

NewProject = Callable[[], AbstractContextManager[Project]]


@pytest.fixture
def a_project(
    new_project: Callable[..., Project], tmp_path_factory: pytest.TempPathFactory
) -> NewProject:
    """Make a project for a history, of which nothing stays."""

    @contextmanager
    def create() -> Iterator[Project]:
        project = new_project(tmp_path_factory.mktemp("history"))
        try:
            yield project
        finally:
            project.drop_schemas(project.schema)
            shutil.rmtree(project.path)

    return create


def generated(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        # an example takes seconds, and each is short already
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )


def query(columns: str, names: str, rows: Collection[tuple[Any, ...]]) -> str:
    values = [
        f"({', '.join('null' if value is None else repr(value) for value in row)})" for row in rows
    ]
    source = f"values {', '.join(values or ['(0' + ', null' * names.count(',') + ')'])}"
    return f"select {columns} from {source} as t({names}) where {'true' if rows else 'false'}"


# of the column `value`, which may also be missing
TYPES = (None, "int", "bigint", "string", "double", "decimal(9, 2)", "timestamp_ntz")
# changes that post-hooks make to a table of any format
HOOKS = {
    "adds a row": "insert into {{ this }} (id, name) values (100, 'of a hook')",
    "takes all rows": "truncate table {{ this }}",
    "adds a column": "alter table {{ this }} add columns (of_hook string)",
}


@dataclass(frozen=True)
class Step:
    """One run, and what the service does after it.

    Args:
        rows: key, text and number; keys of keyless tables may repeat
        keyed: whether there is a `unique_key`
        value_type: of a third column
        full_refresh: asked for by the user
        upper: whether a column has its name in upper case
        hook: what a post-hook does; None without one
        scanned: whether the service applies files, or sleeps
        purged: whether the service then deletes what it has applied
    """

    rows: dict[int, tuple[str | None, int | None]]
    keyed: bool
    value_type: str | None
    full_refresh: bool
    upper: bool
    hook: str | None
    scanned: bool
    purged: bool

    def write(self, project: Project) -> None:
        columns = f"id, cast(name as string) as {'NAME' if self.upper else 'name'}"
        if self.value_type == "timestamp_ntz":
            columns += ", cast(timestamp_seconds(cast(value as int)) as timestamp_ntz) as value"
        elif self.value_type:
            columns += f", cast(value as {self.value_type}) as value"
        rows = [(key, text, number) for key, (text, number) in self.rows.items()]
        config = {"unique_key": "id"} if self.keyed else {}
        config |= {"post_hook": HOOKS[self.hook]} if self.hook else {}
        # small files, so that batches have several
        sql = query(columns, "id, name, value", rows)
        project.model(sql, target_file_size="1kb", **config)


texts = st.one_of(st.none(), st.sampled_from(["", "a", "b", "long text " * 40]))
numbers = st.one_of(st.none(), st.integers(-3, 3))
steps = st.builds(
    Step,
    rows=st.dictionaries(st.integers(0, 12), st.tuples(texts, numbers), max_size=12),
    # most steps change rows only: a table that is always rebuilt shows little
    keyed=st.sampled_from([True, True, True, False]),
    value_type=st.sampled_from(["int", "int", "int", *TYPES]),
    full_refresh=st.sampled_from([False] * 5 + [True]),
    upper=st.sampled_from([False] * 5 + [True]),
    hook=st.sampled_from([None] * 6 + list(HOOKS)),
    scanned=st.sampled_from([True, True, True, False]),
    purged=st.booleans(),
)


def test_the_replica_equals_the_model_after_each_step(a_project: NewProject, many: bool) -> None:
    @generated(60 if many else 3)
    @given(are_large=st.booleans(), history=st.lists(steps, min_size=3, max_size=8))
    def check(are_large: bool, history: list[Step]) -> None:
        with a_project() as project:
            if are_large:
                project.take_tables_for_large()
            for step in history:
                step.write(project)
                run_as_foretold(project, step)
                if step.scanned:
                    assert_replicated(project)
                if step.purged:
                    shutil.rmtree(project.folder() / "_ProcessedFiles", ignore_errors=True)
            assert_replicated(project)
            assert project.run()["publication"] == "unchanged"
            assert_replicated(project)

    check()


def run_as_foretold(project: Project, step: Step) -> None:
    """Run the project, which does what a dry run says; but a dry run does not run hooks."""
    arguments = ["--full-refresh"] * step.full_refresh
    if step.hook:
        project.run(*arguments)
        return
    with project.dry_run():
        told = project.run(*arguments)
    done = project.run(*arguments)
    names = ("publication", "reason", "rows_inserted", "rows_updated", "rows_deleted")
    assert [told.get(name) for name in names] == [done.get(name) for name in names]


def assert_replicated(project: Project) -> None:
    (report,) = Replicator(project.landing_zone).scan()
    assert not report.note, report.note
    project.assert_mirrored()


# Incremental models: as much as can be seen is the same with every fast path and without any.

# by number, so that all types can be generated alike
KEYS = {
    "int": "id",
    "bigint": "id * 4294967296 - 9223372036854775808",
    "string": "array('', 'a', 'A', 'b', ' ', 'null')[id]",
    "string collate UTF8_LCASE": "array('', 'a', 'A', 'b', ' ', 'null')[id] collate UTF8_LCASE",
    "date": "date_add(date'2024-01-01', id)",
    "timestamp": "timestampadd(hour, id, timestamp'2024-03-10 00:00:00')",
    "timestamp_ntz": "timestampadd(hour, id, timestamp_ntz'2024-03-10 00:00:00')",
    "decimal": "cast(id as decimal(9, 2)) / 4",
    "double": "array(0D, -0D, 1.5D, double('NaN'), double('Infinity'), -1D)[id]",
    "binary": "cast(cast(id as string) as binary)",
}
STRATEGIES = ("merge", "delete+insert", "append", "insert_overwrite")
VARIANTS: dict[str, list[str]] = {
    "as it is": [],
    "as if it were large": ["small tables"],
    "without fast paths": list(OFF),
}


@dataclass(frozen=True)
class NewRows:
    """The rows that an incremental model selects in one run.

    Args:
        rows: number of the key; a text, which is that of the partition too
        extra: a further column
        full_refresh: asked for by the user
        hook: `pre_hook` or `post_hook`, which adds a row; None without one
        by_hand: whether somebody has added the further column, and filled it
    """

    rows: dict[int, str | None]
    extra: bool
    full_refresh: bool
    hook: str | None
    by_hand: bool

    def hooks(self, key: str) -> dict[str, str]:
        if not self.hook:
            return {}
        added = f"select {KEYS[key]} as k, 'of a hook' as region from values (5) as t(id)"
        absent = "where not exists (select 1 from {{ this }} as m where m.k <=> h.k)"
        statement = f"insert into {{{{ this }}}} (k, region) select k, region from ({added}) as h"
        is_there = "load_relation(this)" if self.hook == "pre_hook" else "true"
        return {self.hook: f"{{% if {is_there} %}}{statement} {absent}{{% endif %}}"}

    def add_column(self, project: Project) -> bool:
        """Let somebody add the further column. Return False if the relation has it already."""
        if not self.by_hand or "orders" not in project.tables():
            return False
        table = f"{project.schema}.orders"
        if "extra" in [row["col_name"] for row in project.sql(f"describe {table}")]:
            return False
        default = " default map('m', 'old')" if project.file_format == "parquet" else ""
        project.sql(f"alter table {table} add columns (extra map<string, string>{default})")
        if project.file_format != "parquet":
            project.sql(f"update {table} set extra = map('m', 'filled')")
        return True

    def sql(self, key: str) -> str:
        columns = f"{KEYS[key]} as k, id % 3 as n, text = 'x' as gone"
        columns += ", array(cast(text as string)) as texts"
        if self.extra:
            columns += ", map('m', cast(text as string)) as extra"
        return query(f"{columns}, cast(text as string) as region", "id, text", self.rows.items())


new_rows = st.builds(
    NewRows,
    rows=st.dictionaries(
        st.integers(0, 5), st.sampled_from([None, "", "a", "x", "long " * 30]), max_size=6
    ),
    extra=st.sampled_from([False, False, True]),
    full_refresh=st.sampled_from([False] * 6 + [True]),
    hook=st.sampled_from([None] * 5 + ["pre_hook", "post_hook"]),
    by_hand=st.sampled_from([False] * 4 + [True]),
)


@st.composite
def models(draw: st.DrawFn, file_format: str) -> dict[str, Any]:
    """The options of an incremental model."""
    strategy = draw(st.sampled_from(STRATEGIES))
    # with Spark alone, all formats that it brings are tried
    formats = ["parquet"] * 3 + ["orc", "json"] if file_format == "parquet" else [file_format]
    config: dict[str, Any] = {
        "unique_key": "k",
        "incremental_strategy": strategy,
        "file_format": draw(st.sampled_from(formats)),
        "on_schema_change": "append_new_columns",
    }
    if draw(st.booleans()):
        config["partition_by"] = "region"
    if draw(st.booleans()) and strategy in ("merge", "delete+insert"):
        config["delete_when"] = "gone"
    if draw(st.booleans()) and file_format == "parquet":  # the others have no buckets
        config |= {"clustered_by": "n", "buckets": 2}
    return config


@pytest.mark.needs(session="fast paths are forced off in this process")
def test_fast_paths_change_nothing(a_project: NewProject, file_format: str, many: bool) -> None:
    @generated(60 if many else 3)
    @given(
        key=st.sampled_from(list(KEYS)),
        zone=st.sampled_from(["UTC", "America/New_York"]),
        model=models(file_format),
        history=st.lists(new_rows, min_size=2, max_size=5),
    )
    def check(key: str, zone: str, model: dict[str, Any], history: list[NewRows]) -> None:
        found = {
            variant: outcomes(a_project, off, key, zone, model, history)
            for variant, off in VARIANTS.items()
        }
        assert found == dict.fromkeys(VARIANTS, found["without fast paths"])

    check()


def outcomes(
    a_project: NewProject,
    off: list[str],
    key: str,
    zone: str,
    model: dict[str, Any],
    history: list[NewRows],
) -> list[Any]:
    """Of each run: whether it succeeds, and the rows of relation and mirror."""
    found: list[Any] = []
    is_ahead = False
    with a_project() as project, without(project.path, off):
        project.target["server_side_parameters"] = {"spark.sql.session.timeZone": zone}
        project.write_project()
        for step in history:
            changed = step.add_column(project) or step.hook is not None
            config = {**model, **step.hooks(key)}
            project.model(step.sql(key), materialized="incremental", **config)
            succeeded = project.dbt("run", *["--full-refresh"] * step.full_refresh)
            # a node that fails leaves what a hook or a hand wrote, or what a post-hook was to see
            is_ahead = not succeeded and (is_ahead or changed)
            outcome: Any = succeeded
            if project.folder().exists():
                if not is_ahead:
                    project.assert_mirrored()
                outcome = (succeeded, project.relation(), project.mirror())
            found.append(outcome)
    return found


# Held publications: whatever is built and tested in whichever order, only what has passed is seen.


commands = st.sampled_from(["build", "build", "run", "test", "build --full-refresh"])
# number of the key; a NULL fails the test
tested_rows = st.dictionaries(
    st.integers(0, 4), st.sampled_from([None, "a", "b", "c", "d"]), min_size=1, max_size=4
)
kinds = st.sampled_from(["table", "incremental"])
HeldStep = tuple[str, str, dict[int, str | None]]


def test_only_rows_that_have_passed_their_tests_are_seen(
    a_project: NewProject, many: bool
) -> None:
    @generated(60 if many else 3)
    @given(
        are_large=st.booleans(),
        history=st.lists(st.tuples(commands, kinds, tested_rows), min_size=3, max_size=7),
    )
    def check(are_large: bool, history: list[HeldStep]) -> None:
        with a_project() as project:
            if are_large:
                project.take_tables_for_large()
            test = "{name: orders, columns: [{name: name, data_tests: [not_null]}]}"
            project.write("models/orders.yml", f"models: [{test}]")
            # the first one is there, so that there is something to test
            first: HeldStep = ("run", "table", {0: "a"})
            for command, kind, rows in (first, *history):
                sql = query("id, cast(name as string) as name", "id, name", rows.items())
                if command != "test":
                    config = {"unique_key": "id", "publish": "after_tests"}
                    project.model(sql, materialized=kind, **config)

                succeeded = project.dbt(*command.split())

                published = project.folder().exists() and list(project.mirror())
                assert None not in {dict(row).get("name") for row in published or ()}
                bad = project.sql(f"select 1 from {project.schema}.orders where name is null")
                assert succeeded == (command == "run" or not bad)
                if succeeded and command != "run":
                    project.assert_mirrored()

    check()
