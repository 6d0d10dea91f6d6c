"""Histories that nobody thought of: the replica equals the model whatever happened before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dbt.adapters.openmirroring.replicator.replicator import Replicator
from tests.functional.fast_paths import OFF, without
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
        upper: whether a column has its name in upper case
        hook: what a post-hook does; None without one
        scanned: into which folder applied files go; None: the service sleeps
        purged: whether the service then deletes what it has applied
    """

    rows: dict[int, tuple[str | None, int | None]]
    keyed: bool
    value_type: str | None
    full_refresh: bool
    upper: bool
    hook: str | None
    scanned: str | None
    purged: bool

    @property
    def sql(self) -> str:
        values = [
            f"({key}, {'null' if text is None else repr(text)}, {'null' if n is None else n})"
            for key, (text, n) in self.rows.items()
        ] or ["(0, '', 0)"]
        columns = f"id, cast(name as string) as {'NAME' if self.upper else 'name'}"
        if self.value_type == "timestamp_ntz":
            columns += ", cast(timestamp_seconds(cast(value as int)) as timestamp_ntz) as value"
        elif self.value_type:
            columns += f", cast(value as {self.value_type}) as value"
        where = "" if self.rows else " where false"
        return f"select {columns} from values {', '.join(values)} as t(id, name, value){where}"

    @property
    def config(self) -> dict[str, Any]:
        # small files, so that batches have several
        config: dict[str, Any] = {"target_file_size": "1kb"}
        if self.keyed:
            config["unique_key"] = "id"
        if self.hook:
            config["post_hook"] = HOOKS[self.hook]
        return config


# changes that post-hooks make to a table of any format
HOOKS = {
    "adds a row": "insert into {{ this }} (id, name) values (100, 'of a hook')",
    "takes all rows": "truncate table {{ this }}",
    "adds a column": "alter table {{ this }} add columns (of_hook string)",
}

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
            arguments = ["--full-refresh"] * step.full_refresh
            if step.hook:  # a dry run does not run hooks
                project.run(*arguments)
            else:
                run_as_foretold(project, arguments)
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


def run_as_foretold(project: Project, arguments: list[str]) -> bool:
    """Run the project, which does what a dry run says; True if it succeeds."""
    with project.dry_run():
        foretold = project.dbt("run", *arguments)
        told = project.results()["orders"]["adapter_response"]
    succeeded = project.dbt("run", *arguments)
    done = project.results()["orders"]["adapter_response"]
    assert foretold == succeeded
    names = ("publication", "reason", "rows_inserted", "rows_updated", "rows_deleted")
    assert [told.get(name) for name in names] == [done.get(name) for name in names]
    return succeeded


def assert_replicated(project: Project, processed: str) -> None:
    (report,) = Replicator(Path(project.landing_zone), processed).scan()
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

    def add_column(self, project: Project) -> None:
        """Let somebody add the further column, if the relation lacks it."""
        if not self.by_hand or "orders" not in project.tables():
            return
        table = f"{project.schema}.orders"
        columns = [row["col_name"] for row in project.sql(f"describe {table}")]
        if "extra" in columns:
            return
        default = " default map('m', 'old')" if project.file_format == "parquet" else ""
        project.sql(f"alter table {table} add columns (extra map<string, string>{default})")
        if project.file_format != "parquet":
            project.sql(f"update {table} set extra = map('m', 'filled')")

    def sql(self, key: str) -> str:
        values = [
            f"({id}, {'null' if text is None else repr(text)})" for id, text in self.rows.items()
        ]
        columns = f"{KEYS[key]} as k, id % 3 as n, text = 'x' as gone"
        columns += ", array(cast(text as string)) as texts"
        if self.extra:
            columns += ", map('m', cast(text as string)) as extra"
        source = f"values {', '.join(values or ['(0, null)'])} as t(id, text)"
        condition = "" if self.rows else " where false"
        return f"select {columns}, cast(text as string) as region from {source}{condition}"


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
models = st.fixed_dictionaries(
    {},
    optional={
        "partition_by": st.just("region"),
        "delete_when": st.just("gone"),
        "clustered_by": st.just("n"),
    },
)


Test = TypeVar("Test", bound=Callable[..., None])


def histories(examples: int) -> Callable[[Test], Test]:
    def decorate(test: Test) -> Test:
        given_ = given(
            key=st.sampled_from(list(KEYS)),
            strategy=st.sampled_from(STRATEGIES),
            stored_as=st.sampled_from(["parquet", "parquet", "parquet", "orc", "json"]),
            zone=st.sampled_from(["UTC", "America/New_York"]),
            model=models,
            history=st.lists(new_rows, min_size=2, max_size=5),
        )
        chosen = settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        )
        return cast(Test, chosen(given_(test)))

    return decorate


def assert_the_same_with_and_without_fast_paths(
    new_project: Callable[[Path], Project],
    folders: pytest.TempPathFactory,
    file_format: str,
    key: str,
    strategy: str,
    stored_as: str,
    zone: str,
    model: dict[str, Any],
    history: list[NewRows],
) -> None:
    if file_format != "parquet":  # with which all that Spark brings are tried
        stored_as = file_format
    config: dict[str, Any] = {"unique_key": "k", "incremental_strategy": strategy, **model}
    config |= {"file_format": stored_as, "on_schema_change": "append_new_columns"}
    if stored_as in ("delta", "iceberg"):  # these have no buckets
        config.pop("clustered_by", None)
    if "clustered_by" in config:
        config["buckets"] = 2
    if strategy not in ("merge", "delete+insert"):
        config.pop("delete_when", None)
    outcomes: dict[str, list[Any]] = {}
    for variant, off in VARIANTS.items():
        project = new_project(folders.mktemp("history"))
        project.target["server_side_parameters"] = {"spark.sql.session.timeZone": zone}
        project.write_project()
        try:
            is_ahead = False
            with without(project.path, off):
                for step in history:
                    step.add_column(project)
                    hooks = step.hooks(key)
                    project.model(step.sql(key), materialized="incremental", **config, **hooks)
                    arguments = ["--full-refresh"] * step.full_refresh
                    succeeded = project.dbt("run", *arguments)
                    outcome: Any = succeeded
                    # a node that fails leaves what its hook has written
                    is_ahead = not succeeded and (is_ahead or step.hook == "pre_hook")
                    if project.folder().exists():
                        if not is_ahead:
                            project.assert_mirrored()
                        outcome = (succeeded, project.relation(), project.mirror())
                    outcomes.setdefault(variant, []).append(outcome)
        finally:
            project.drop_schemas(project.schema)
            shutil.rmtree(project.path)
    plain = outcomes.pop("without fast paths")
    for variant, found in outcomes.items():
        assert found == plain, variant


@pytest.mark.session("fast paths are forced off in this process")
@histories(4)
def test_fast_paths_change_nothing(
    new_project: Callable[[Path], Project],
    tmp_path_factory: pytest.TempPathFactory,
    file_format: str,
    **history: Any,
) -> None:
    assert_the_same_with_and_without_fast_paths(
        new_project, tmp_path_factory, file_format, **history
    )


@pytest.mark.exhaustive
@pytest.mark.session("fast paths are forced off in this process")
@histories(60)
def test_fast_paths_change_nothing_in_many_histories(
    new_project: Callable[[Path], Project],
    tmp_path_factory: pytest.TempPathFactory,
    file_format: str,
    **history: Any,
) -> None:
    assert_the_same_with_and_without_fast_paths(
        new_project, tmp_path_factory, file_format, **history
    )


# Held publications: whatever is built and tested in whichever order, only what has passed is seen.


@dataclass(frozen=True)
class HeldStep:
    """One command.

    Args:
        command: `build`, `run` or `test`
        rows: number of the key; a NULL fails the test
        incremental: the rows are merged, and not all there is
        full_refresh: asked for by the user
    """

    command: str
    rows: dict[int, str | None]
    incremental: bool
    full_refresh: bool

    def write(self, project: Project) -> None:
        values = [
            f"({id}, {'null' if text is None else repr(text)})" for id, text in self.rows.items()
        ]
        project.model(
            "select id, cast(name as string) as name "
            f"from values {', '.join(values)} as t(id, name)",
            materialized="incremental" if self.incremental else "table",
            unique_key="id",
            publish="after_tests",
        )


held_steps = st.builds(
    HeldStep,
    command=st.sampled_from(["build", "build", "run", "test"]),
    rows=st.dictionaries(
        st.integers(0, 4), st.sampled_from([None, "a", "b", "c", "d"]), min_size=1, max_size=4
    ),
    incremental=st.booleans(),
    full_refresh=st.sampled_from([False] * 5 + [True]),
)


def held_histories(examples: int) -> Callable[[Test], Test]:
    def decorate(test: Test) -> Test:
        chosen = settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        )
        history = st.lists(held_steps, min_size=3, max_size=7)
        return cast(Test, chosen(given(are_large=st.booleans(), history=history)(test)))

    return decorate


def assert_only_passed_rows_are_seen(
    project: Project, are_large: bool, history: list[HeldStep]
) -> None:
    if are_large:
        project.take_tables_for_large()
    test = "models:\n  - name: orders\n    columns: [{name: name, data_tests: [not_null]}]\n"
    project.write("models/orders.yml", test)
    # the first one is there, so that there is something to test
    for step in [HeldStep("run", {0: "a"}, False, False), *history]:
        if step.command != "test":
            step.write(project)
        arguments = ["--full-refresh"] * (step.full_refresh and step.command != "test")
        succeeded = project.dbt(step.command, *arguments)

        published = project.folder().exists() and list(project.mirror())
        names = {dict(row).get("name") for row in published or ()}
        assert None not in names
        bad = project.sql(f"select 1 from {project.schema}.orders where name is null")
        if step.command == "run":
            assert succeeded
        else:
            assert succeeded == (not bad)
        if succeeded and step.command != "run":
            project.assert_mirrored()


@held_histories(3)
def test_only_rows_that_have_passed_their_tests_are_seen(
    new_project: Callable[[Path], Project],
    tmp_path_factory: pytest.TempPathFactory,
    are_large: bool,
    history: list[HeldStep],
) -> None:
    project = new_project(tmp_path_factory.mktemp("held"))
    try:
        assert_only_passed_rows_are_seen(project, are_large, history)
    finally:
        project.drop_schemas(project.schema)
        shutil.rmtree(project.path)


@pytest.mark.exhaustive
@held_histories(60)
def test_only_rows_that_have_passed_their_tests_are_seen_in_many_histories(
    new_project: Callable[[Path], Project],
    tmp_path_factory: pytest.TempPathFactory,
    are_large: bool,
    history: list[HeldStep],
) -> None:
    project = new_project(tmp_path_factory.mktemp("held"))
    try:
        assert_only_passed_rows_are_seen(project, are_large, history)
    finally:
        project.drop_schemas(project.schema)
        shutil.rmtree(project.path)
