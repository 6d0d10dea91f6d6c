"""A table-like node, as its dbt context has it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import sqlparse
from dbt.adapters.events.types import CodeExecution, CodeExecutionStatus
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.batch import Owner
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation, quoted
from dbt.adapters.openmirroring.spark.seed import SEED_VIEW, seed_view
from dbt.adapters.openmirroring.spark.table import Layout

# of dbt's snapshots
Strategy = Mapping[str, Any]


class Node:
    """What dbt says of a node, and its SQL.

    Args:
        context: of dbt, with the node's macros
        warehouse: Spark's tables
        in_onelake: the landing zone is there

    Raises:
        CompilationError: a configuration that is unknown or contradictory
    """

    def __init__(
        self, context: Mapping[str, Any], warehouse: Warehouse, in_onelake: bool = False
    ) -> None:
        self._context = context
        self.warehouse = warehouse
        self.model: dict[str, Any] = context["model"]
        self.config: dict[str, Any] = self.model["config"]
        self.target: OpenMirroringRelation = context["this"].incorporate(type="table")
        values = dict(self.config)
        if self.is_history:
            # what a dbt snapshot calls its unique key is not unique in it
            values["unique_key"] = self.history_columns["dbt_scd_id"]
        self.options = NodeConfig.parse(values, in_onelake)

    # What it is

    @property
    def owner(self) -> Owner:
        return Owner(
            project=self._context["project_name"],
            node=self.model["unique_id"],
            schema=str(self.target.schema),
            invocation_id=self._context["invocation_id"],
        )

    @property
    def table_folder(self) -> TableFolder:
        schema = str(self.target.schema) if self.options.schema_folder else ""
        return TableFolder(schema, str(self.target.identifier))

    @property
    def is_history(self) -> bool:
        """A dbt snapshot."""
        return bool(self.config["materialized"] == "snapshot")

    @property
    def is_view(self) -> bool:
        return bool(self.config["materialized"] == "view")

    @property
    def reads_itself(self) -> bool:
        """The node's SQL may have been compiled from what the relation had before."""
        return bool(self.config["materialized"] == "incremental")

    @cached_property
    def history_columns(self) -> Mapping[str, str]:
        """The names of the columns that a dbt snapshot adds."""
        names: Mapping[str, str] = (
            # a property of dbt's object, which the node's own configuration does not have
            self._context["config"].get("snapshot_table_column_names")
            or self._context["get_snapshot_table_column_names"]()
        )
        return names

    @property
    def has_contract(self) -> bool:
        return bool((self.config.get("contract") or {}).get("enforced"))

    @property
    def predicates(self) -> list[str]:
        """SQL that a new row and a row of the snapshot must meet to be the same one."""
        found = self.config.get("predicates") or self.config.get("incremental_predicates")
        return [found] if isinstance(found, str) else list(found or [])

    @property
    def has_buckets(self) -> bool:
        return bool(self.config.get("clustered_by"))

    @cached_property
    def planned_layout(self) -> Layout:
        """How the next snapshot is to be stored, if not in buckets."""
        default = "set spark.sql.sources.default"
        file_format = self.config.get("file_format") or self.warehouse.query(default).rows[0][1]
        partitions = tuple(name.lower() for name in self.options.partition_by)
        return Layout(file_format.lower(), partitions, "")

    # What dbt wants

    @property
    def is_incremental(self) -> bool:
        return bool(self._context["is_incremental"]())

    @property
    def is_full_refresh(self) -> bool:
        return bool(self._context["should_full_refresh"]())

    @property
    def is_checked_only(self) -> bool:
        """`--empty` or `--sample`: the SQL is run, and nothing is published."""
        arguments = self._context["invocation_args_dict"]
        return bool(arguments.get("empty") or arguments.get("sample"))

    @property
    def on_schema_change(self) -> str:
        validate = self._context["incremental_validate_on_schema_change"]
        return str(validate(self.config.get("on_schema_change"), default="ignore"))

    def run_header(self) -> None:
        """Run the statements of `sql_header` in the node's own session, one by one."""
        for statement in sqlparse.split(self.config.get("sql_header") or ""):
            self.warehouse.execute(statement.rstrip(";"))

    # Its rows

    def query(self) -> str:
        """The rows of the node, as a query.

        Raises:
            DbtRuntimeError: a Python model fails, or this is not a session
        """
        if self.config["materialized"] == "seed":
            return self._seed_query()
        code: str = self._context["compiled_code"]
        if self.model["language"] == "python":
            return self._python_query(code)
        return code

    def _python_query(self, code: str) -> str:
        handle = self.warehouse.handle
        if not handle:
            raise DbtRuntimeError(
                "Python models need `method: session`, `connect` or `livy` in the profile."
            )
        view = quoted(f"rows of {self.model['alias']}")
        fire_event(CodeExecution(conn_name=self.warehouse.connection, code_content=code))
        started = time.monotonic()
        handle.create_view(view, code, self.model["unique_id"])
        elapsed = round(time.monotonic() - started, 2)
        fire_event(CodeExecutionStatus(status="OK", elapsed=elapsed))
        return f"select * from {view}"

    def _seed_query(self) -> str:
        """A seed's rows are handed over as strings, and cast by Spark.

        dbt-spark's literals lose NULLs and digits.
        """
        seed = self._context["load_agate_table"]()
        self._context["store_result"]("agate_table", response="OK", agate_table=seed)
        self.warehouse.execute(seed_view(SEED_VIEW, seed))
        types = self.config.get("column_types") or {}
        adapter = self._context["adapter"]
        columns = [
            {
                "quoted": adapter.quote_seed_column(name, self.config.get("quote_columns")),
                "type": types.get(name) or adapter.convert_type(seed, number),
            }
            for number, name in enumerate(seed.column_names)
        ]
        return self.warehouse.sql("mirror_seed", SEED_VIEW, columns)

    def view(self, relation: OpenMirroringRelation) -> str:
        """The statement that makes a view of the node's rows."""
        return str(self._context["get_create_view_as_sql"](relation, self._context["sql"]))

    # What dbt's macros do

    def checked_contract(self, query: str) -> str:
        """A query of the columns that the contract names, in its order.

        Raises:
            CompilationError: the query has other columns
        """
        self._context["get_assert_columns_equivalent"](query)
        return str(self._context["get_select_subquery"](query))

    def history_strategy(self, exists: bool) -> Strategy:
        """How a dbt snapshot finds what has changed.

        Args:
            exists: it has been built before
        """
        strategy = self._context["strategy_dispatch"](self.config.get("strategy"))
        found: Strategy = strategy(
            self.model, "snapshotted_data", "source_data", self.config, exists
        )
        return found

    def first_history(self, strategy: Strategy, query: str) -> str:
        """The rows of a dbt snapshot that is built for the first time, as a query."""
        return str(self._context["build_snapshot_table"](strategy, query))

    def history_changes(self, strategy: Strategy, query: str) -> str:
        """What has changed since a dbt snapshot was built, as a query.

        Raises:
            DbtRuntimeError: the snapshot lacks columns that it must have
        """
        self._context["adapter"].assert_valid_snapshot_target_given_strategy(
            self.target, self.history_columns, strategy
        )
        return str(self._context["snapshot_staging_table"](strategy, query, self.target))

    def document(self) -> None:
        """Write descriptions to the relation, if the configuration says so."""
        self._context["persist_docs"](self.target, self.model)

    def stored(self, response: Any) -> None:
        """Let dbt tell what the node did."""
        self._context["store_result"]("main", response=response)

    def tell(self, text: str) -> None:
        self._context["log"](text, info=True)

    def warn(self, text: str) -> None:
        self._context["exceptions"]["warn"](text)


def refuse_stale_compilation() -> CompilationError:
    """The node's SQL was compiled before an earlier run was finished."""
    return CompilationError(
        "An earlier run was interrupted and has just been brought to its end, but this run was "
        "compiled without its result. Nothing was lost; run it again."
    )
