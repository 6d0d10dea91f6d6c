"""After any fault at any point of a run, the next run ends with mirror and model equal.

The points are all operations of the storage and all statements of Spark, one after the other. What
is killed is dbt's process; Spark goes on, as a cluster does. When both end, see
`test_killed_runs.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar

import pytest

from tests.functional.faults.fault import KINDS, Fault
from tests.functional.nodes import write_node
from tests.functional.project import Project

# several files a batch
SMALL_FILES = {"target_file_size": "4kb"}
KEYED: dict[str, Any] = {"unique_key": "id", **SMALL_FILES}
ROWS = "select id, sha2(concat(id, '{salt}'), 512) as name from range({rows})"


class Scenario:
    """A table that changes before each run; `n` counts the changes.

    Attributes:
        command: runs the node
        config: of the model
    """

    command = "run"
    config: ClassVar[dict[str, Any]] = KEYED

    def begin(self, project: Project) -> None:
        self.change(project, 0)
        project.run(command=self.command)

    def change(self, project: Project, n: int) -> None:
        project.model(self.selected(n), self.table(n), **self.config)

    def table(self, n: int) -> str:
        return "orders"

    def selected(self, n: int) -> str:
        """The query of the model."""
        return self.expected(n)

    def expected(self, n: int) -> str:
        """The rows after the change, as a query."""
        return ROWS.format(salt=n % 2, rows=60 + n)


class Initial(Scenario):
    def begin(self, project: Project) -> None:
        pass

    def table(self, n: int) -> str:
        return f"orders_{n}"

    def change(self, project: Project, n: int) -> None:
        # a run reads the journal of each table without a model: one more with each change
        (project.path / "models" / f"{self.table(n - 1)}.sql").unlink(missing_ok=True)
        shutil.rmtree(project.folder(self.table(n - 1)), ignore_errors=True)
        super().change(project, n)


class Changes(Scenario):
    """Deletes, updates and new rows."""

    def expected(self, n: int) -> str:
        return f"{super().expected(n)} where id >= {n}"


class Held(Changes):
    """Built, and published at the end of the command."""

    config: ClassVar = {**KEYED, "publish": "after_tests"}


class Rebuild(Scenario):
    def expected(self, n: int) -> str:
        return f"select *, 1 as c{n} from ({super().expected(n)})"


class ColumnAdded(Scenario):
    # every column makes each file larger: with small ones, each run would have more of them
    config: ClassVar = {"unique_key": "id"}

    def expected(self, n: int) -> str:
        columns = "".join(f", id as c{i}" for i in range(n))
        return f"select *{columns} from ({super().expected(n)})"


class Append(Scenario):
    config: ClassVar = {"materialized": "incremental", **SMALL_FILES}

    def selected(self, n: int) -> str:
        new = "where id > (select max(id) from {{ this }})"
        return f"{self.expected(n)} {{% if is_incremental() %}} {new} {{% endif %}}"

    def expected(self, n: int) -> str:
        return f"select id, 'x' as name from range({10 + n})"


class Merge(Scenario):
    config: ClassVar = {"materialized": "incremental", **KEYED}

    def begin(self, project: Project) -> None:
        # for a large table, only rows in files that new rows touch are looked at
        project.take_tables_for_large()
        super().begin(project)

    def selected(self, n: int) -> str:
        return f"select id, {n} as name from range({n % 3}, {10 + n})"

    def expected(self, n: int) -> str:
        # rows that a run has left keep the number of the last run that had them
        kept = {0: f"{n}", 1: f"if(id < 1, {n - 1}, {n})"}
        kept[2] = f"case when id < 1 then {n - 2} when id < 2 then {n - 1} else {n} end"
        return f"select id, {kept[n % 3]} as name from range({10 + n})"


class HeldMerge(Merge):
    config: ClassVar = {**Merge.config, "publish": "after_tests"}


class HookedMerge(Merge):
    """Rows that hooks add to an incremental model, before and after new rows are merged."""

    def change(self, project: Project, n: int) -> None:
        def add(id_: int) -> str:
            absent = f"not exists (select 1 from {{{{ this }}}} where id = {id_})"
            return f"insert into {{{{ this }}}} select {id_}L, {-id_} where {absent}"

        before = f"{{% if is_incremental() %}}{add(-n)}{{% endif %}}"
        project.model(self.selected(n), pre_hook=before, post_hook=add(-1000), **self.config)

    def expected(self, n: int) -> str:
        added = f"select -id as id, cast(id as int) as name from range(1, {n + 1})"
        return f"{super().expected(n)} union all {added} union all select -1000L, 1000"


class Seed(Scenario):
    command = "seed"

    def change(self, project: Project, n: int) -> None:
        project.write("seeds/orders.csv", "id,n\n" + "".join(f"{i},{n}\n" for i in range(20 + n)))
        config = "seeds:\n  - name: orders\n    config: {unique_key: id, target_file_size: 1kb}\n"
        project.write("seeds/orders.yml", config)

    def expected(self, n: int) -> str:
        return f"select cast(id as bigint) as id, {n}L as n from range({20 + n})"


class Snapshot(Scenario):
    command = "build"

    def change(self, project: Project, n: int) -> None:
        write_node(project, "dbt snapshot", n)

    def expected(self, n: int) -> str:
        versions = (
            f"select 0 as id, concat('v', id) as name, id < {n} as closed from range({n + 1})"
        )
        return f"{versions} union all select 1, 'a', false"


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "initial load": Initial,
    "changes": Changes,
    "held": Held,
    "held merge": HeldMerge,
    "rebuild": Rebuild,
    "column added": ColumnAdded,
    "append": Append,
    "merge": Merge,
    "hooked merge": HookedMerge,
    "seed": Seed,
    "dbt snapshot": Snapshot,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_next_run_brings_mirror_and_model_together(
    project: Project, name: str, kind: str, record_property: Callable[[str, object], None]
) -> None:
    scenario = SCENARIOS[name]()
    scenario.begin(project)
    for n in count(1):
        scenario.change(project, n)
        table = scenario.table(n)

        fault = Fault(n, kind)
        succeeded = fault.during(project, scenario.command)
        project.let_claims_expire()

        # an unpublished node is an error
        if succeeded:
            assert_right(project, scenario, n)
        project.run(command=scenario.command)
        assert_right(project, scenario, n)
        project.assert_mirrored(table)
        if not fault.happened:
            assert succeeded
            break
    # statements and operations of one node, and those that begin and end a run
    assert n > 10
    record_property(f"{name}: {kind}", n - 1)


def assert_right(project: Project, scenario: Scenario, n: int) -> None:
    relation = f"{project.schema}.{scenario.table(n)}"
    if isinstance(scenario, Snapshot):
        relation = f"(select id, name, dbt_valid_to is not null as closed from {relation})"
    found, expected = f"select * from {relation}", scenario.expected(n)
    assert not project.sql(f"({found}) except all ({expected})")
    assert not project.sql(f"({expected}) except all ({found})")
