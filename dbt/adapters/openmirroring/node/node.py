"""A table-like node, as its dbt context describes it."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import sqlparse
from dbt.adapters.events.types import CodeExecution, CodeExecutionStatus
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.batch import Owner
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.node.config import HistoryConfig, NodeConfig
from dbt.adapters.openmirroring.node.options import given
from dbt.adapters.openmirroring.node.user_code import writes
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.refusals import no_python_models
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.session import SEED_VIEW, seed_view
from dbt.adapters.openmirroring.spark.table import RECORDING_FORMATS, ZONE, Layout
from dbt.adapters.openmirroring.text.errors import RefusedError
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.casts import Cast


class Node:
    """The properties of a node in dbt, and its SQL.

    Args:
        context: the dbt context, with the node's macros
        in_onelake: whether the landing zone is in OneLake
        is_view: whether dbt makes a view of its rows, also of a node that is a table otherwise

    Raises:
        CompilationError: if the configuration is unknown or contradictory
    """

    def __init__(
        self,
        context: Mapping[str, Any],
        warehouse: Warehouse,
        in_onelake: bool = False,
        is_view: bool = False,
    ) -> None:
        self._context = context
        self.warehouse = warehouse
        self.model: dict[str, Any] = context["model"]
        self.config: dict[str, Any] = given(self.model["config"])
        self.target: OpenMirroringRelation = context["this"].incorporate(type="table")
        materialized = self.config["materialized"]
        self.is_view = is_view
        # the compiled SQL may depend on the earlier rows of the relation
        self.reads_itself: bool = materialized == "incremental"
        self.has_contract = bool((self.config.get("contract") or {}).get("enforced"))
        self.options = NodeConfig.parse(self.config, in_onelake)

    # Identity and configuration

    @cached_property
    def owner(self) -> Owner:
        return Owner(
            project=self._context["project_name"],
            node=self.model["unique_id"],
            schema=str(self.target.schema),
            invocation_id=self._context["invocation_id"],
            target=self._context["target"]["name"],
            user=_user(),
        )

    @property
    def table_folder(self) -> TableFolder:
        schema = str(self.target.schema) if self.options.schema_folder else ""
        return TableFolder(schema, str(self.target.identifier))

    @cached_property
    def history_columns(self) -> Mapping[str, str]:
        """The names of the columns that a dbt snapshot adds, by dbt's own names for them."""
        names: Mapping[str, str] = (
            # dbt's config object computes this property; the node's configuration lacks it
            self._context["config"].get("snapshot_table_column_names")
            or self._context["get_snapshot_table_column_names"]()
        )
        return names

    @property
    def is_history(self) -> bool:
        return self.options.history is not None

    @property
    def history(self) -> HistoryConfig:
        """How this dbt snapshot finds changed rows."""
        assert self.options.history, "only a dbt snapshot has a history"
        return self.options.history

    @property
    def cast_remedy(self) -> str:
        """The way out for a value that its column cannot hold."""
        if self.is_history:
            return "Cast it in the source of the dbt snapshot."
        return (
            "Cast it in the model, or run with --full-refresh: then the table gets the types of "
            "the model."
        )

    @property
    def batch(self) -> Mapping[str, Any] | None:
        """The batch of a microbatch model, with `event_time_start` and `event_time_end`."""
        # dbt makes none if the project has a `microbatch` macro of its own
        is_in_batches = self.options.incremental_strategy == "microbatch"
        return self.model.get("batch") if is_in_batches else None

    @cached_property
    def planned_layout(self) -> Layout:
        """The layout of the next snapshot, without buckets."""
        default = "set spark.sql.sources.default"
        file_format = self.config.get("file_format") or self.warehouse.query(default).rows[0][1]
        file_format = file_format.lower()
        partitions = tuple(name.lower() for name in self.options.partition_by)
        zone = "" if file_format in RECORDING_FORMATS else self.zone_options.get(ZONE, "")
        return Layout(file_format, partitions, "", zone)

    @property
    def zone_options(self) -> dict[str, str]:
        """The option of the node's tables for the zone of times in the names of their folders.

        Without it, each session reads the times of partitions in a zone of its own.
        """
        file_format = str(self.config.get("file_format")).lower()
        if not self.options.partition_by or file_format in (*RECORDING_FORMATS, "hudi"):
            return {}
        options = self.config.get("options") or {}
        given = [str(value) for name, value in options.items() if name.lower() == ZONE.lower()]
        return {ZONE: given[0] if given else "UTC"}

    # The request of the command

    @property
    def is_incremental(self) -> bool:
        return bool(self._context["is_incremental"]())

    @property
    def extends(self) -> bool:
        """Whether a build of the node extends the rows of its relation."""
        return (self.reads_itself or self.is_history) and not self.is_full_refresh

    @property
    def sources(self) -> Iterator[OpenMirroringRelation]:
        """The tables of other nodes that a run of the node reads.

        Views are read through. Tables of dbt sources and of hooks are not known.
        """
        nodes = self._context["graph"]["nodes"]
        seen: set[str] = set()
        waiting = list(self.model["depends_on"].get("nodes", ()))
        while waiting:
            found = nodes.get(waiting.pop())
            if found is None or found["unique_id"] in seen:
                continue
            seen.add(found["unique_id"])
            if found["config"]["materialized"] in ("view", "ephemeral"):
                waiting.extend(found["depends_on"]["nodes"])
            else:
                path = {"schema": found["schema"], "identifier": found["alias"]}
                yield self.target.incorporate(path=path)

    @cached_property
    def is_full_refresh(self) -> bool:
        return bool(self._context["should_full_refresh"]())

    @property
    def is_checked_only(self) -> bool:
        """Whether `--empty` or `--sample` is set: the SQL is run, and nothing is published."""
        arguments = self._context["invocation_args_dict"]
        return bool(arguments.get("empty") or arguments.get("sample"))

    # The user's code around the build

    @property
    def has_code_before(self) -> bool:
        """Whether the user's own statements or Python code run before the build."""
        is_python = self.model.get("language") == "python"
        return bool(self._context["pre_hooks"] or self.config.get("sql_header") or is_python)

    @property
    def has_post_hooks(self) -> bool:
        return bool(self._context["post_hooks"])

    @property
    def has_own_code(self) -> bool:
        return self.has_code_before or self.has_post_hooks

    def run_code_before(self, allows: Callable[[str], bool]) -> None:
        """Run the pre-hooks, `sql_header` and a Python model.

        Args:
            allows: returns False for a statement to leave out. It is called before each one, and
                before a Python model that writes to a table
        """
        # Spark has no transactions, but hooks outside of one come first here and last after it
        hooks = sorted(self._context["pre_hooks"], key=lambda hook: bool(hook["transaction"]))
        self._run_hooks(hooks, allows)
        self.run_own_code(allows)

    def run_own_code(self, allows: Callable[[str], bool]) -> None:
        """Run the statements of `sql_header` one by one, or a Python model."""
        with self.warehouse.users_code(allows):
            for statement in sqlparse.split(self.config.get("sql_header") or ""):
                self._run(statement)
        # dbt makes a view of a Python model's table in SQL
        if self.model.get("language") == "python" and not self.is_view:
            code = self._context["compiled_code"]
            if writes(code) and not allows(f"insert into {code}"):
                raise DbtRuntimeError(
                    "The Python model writes to a table. A command that only checks SQL must not "
                    "do that, and cannot run the model without it. Nothing was run."
                )
            _ = self.query

    def run_post_hooks(self, allows: Callable[[str], bool] = lambda _: True) -> None:
        """Run the post-hooks. `allows` is as for `run_code_before`."""
        hooks = sorted(self._context["post_hooks"], key=lambda hook: not hook["transaction"])
        if hooks:
            with self.warehouse.users_session():  # it may remember files of before the build
                self.warehouse.run("mirror_find_files", table=self.target)
        self._run_hooks(hooks, allows)

    def _run_hooks(
        self, hooks: Sequence[Mapping[str, Any]], allows: Callable[[str], bool]
    ) -> None:
        for hook in hooks:
            with self.warehouse.users_code(allows):
                # a macro in it may run statements of its own
                self._run(str(self._context["render"](hook["sql"])))

    def _run(self, statement: str) -> None:
        statement = statement.strip().rstrip(";")
        if statement:
            self.warehouse.execute(statement)

    # The rows of the node

    @cached_property
    def query(self) -> str:
        """A query of the node's rows. A Python model runs when it is asked for first."""
        with self.warehouse.users_session():
            if self.config["materialized"] == "seed":
                return self._seed_query()
            code: str = self._context["compiled_code"]
            if self.model["language"] == "python":
                return self._python_query(code)
            return code

    def _python_query(self, code: str) -> str:
        handle = self.warehouse.handle
        if not handle:
            raise no_python_models()
        view = quoted(f"rows of {self.model['alias']}")
        name = str(self.warehouse.adapter.connections.get_thread_connection().name)
        fire_event(CodeExecution(conn_name=name, code_content=code))
        started = time.monotonic()
        handle.create_view(view, code, self.model["unique_id"])
        elapsed = round(time.monotonic() - started, 2)
        fire_event(CodeExecutionStatus(status="OK", elapsed=elapsed))
        return f"select * from {view}"

    def _seed_query(self) -> str:
        """Return a query that casts the rows of a seed, which Spark receives as strings.

        The literals of dbt-spark lose NULLs and digits.
        """
        seed = self._context["load_agate_table"]()
        self._context["store_result"]("agate_table", response="OK", agate_table=seed)
        self.warehouse.execute(seed_view(SEED_VIEW, seed))
        types = self.config.get("column_types") or {}
        folded = {name.lower(): type_ for name, type_ in types.items()}
        adapter = self._context["adapter"]
        columns = []
        for number, name in enumerate(seed.column_names):
            declared = types.get(name) or folded.get(name.lower())
            type_ = declared or adapter.convert_type(seed, number)
            # as in dbt, a day may be taken from a time
            cast = Cast.of("string", type_, is_exact=type_.lower() != "date")
            quoted_name = adapter.quote_seed_column(name, self.config.get("quote_columns"))
            columns.append((quoted_name, cast))
        remedy = "Correct the seed, or set another type in `column_types`."
        return self.warehouse.sql("mirror_seed", view=SEED_VIEW, columns=columns, remedy=remedy)

    def view(self, relation: OpenMirroringRelation) -> str:
        """Return the statement that creates a view of the node's rows."""
        return str(self._context["get_create_view_as_sql"](relation, self._context["sql"]))

    # Calls of dbt's macros

    def checked_contract(self, query: str) -> str:
        """Return a query of the columns of the contract in its order, and refuse other columns."""
        self._context["get_assert_columns_equivalent"](query)
        return str(self._context["get_select_subquery"](query))

    def first_history(self, query: str) -> str:
        """Return a query of the rows of a dbt snapshot that is built for the first time."""
        return str(self._context["build_snapshot_table"](self._history_strategy(False), query))

    def history_changes(self, query: str, stored: OpenMirroringRelation) -> str:
        """Return a query of the changes since a dbt snapshot was built, which has stored rows."""
        strategy = self._history_strategy(True)
        self._context["adapter"].assert_valid_snapshot_target_given_strategy(
            self.target, self.history_columns, strategy
        )
        return str(self._context["snapshot_staging_table"](strategy, query, stored))

    def _history_strategy(self, exists: bool) -> Any:
        strategy = self._context["strategy_dispatch"](self.config.get("strategy"))
        return strategy(self.model, "snapshotted_data", "source_data", self.config, exists)

    @property
    def documented_columns(self) -> list[dict[str, Any]]:
        """The declared columns whose descriptions are to be stored with the table."""
        if not (self.config.get("persist_docs") or {}).get("columns"):
            return []
        return [column for column in self.model["columns"].values() if column["description"]]

    def document(self) -> None:
        """Write descriptions to the relation, if the configuration asks for it."""
        self._context["persist_docs"](self.target, self.model)

    def stored(self, response: Any) -> None:
        self._context["store_result"]("main", response=response)

    def print_line(self, text: str) -> None:
        self._context["log"](text, info=True)

    def warn(self, text: str) -> None:
        self._context["exceptions"]["warn"](text)


def refuse_stale_compilation() -> CompilationError:
    return RefusedError(
        "An earlier run was interrupted, and was finished just now, after this run was compiled. "
        "Nothing was lost; run it again.",
        code="OM318",
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may know no user
        return ""
