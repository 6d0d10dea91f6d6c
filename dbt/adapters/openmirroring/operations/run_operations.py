"""The run-operations of a dbt project, and their arguments, which macros pass as a mapping.

The arguments are checked before an operation does anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dbt_common.exceptions import CompilationError
from jinja2 import Undefined

from dbt.adapters.openmirroring.dbt_core.project import Graph, Project
from dbt.adapters.openmirroring.destination import replica
from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.publish import rebuild
from dbt.adapters.openmirroring.node.repair import Restored, repair, restore
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.operations import held, status
from dbt.adapters.openmirroring.operations.command import Command, is_gated
from dbt.adapters.openmirroring.operations.project_tables import (
    MirroredNode,
    Outcome,
    ProjectTables,
    drop_orphans,
)
from dbt.adapters.openmirroring.operations.report import Heading, report
from dbt.adapters.openmirroring.spark.embedded.jvm import stop_spark
from dbt.adapters.openmirroring.spark.embedded.start import SparkSetup, prepare_spark
from dbt.adapters.openmirroring.text.errors import RefusedError
from dbt.adapters.openmirroring.text.shown import shown
from dbt.adapters.openmirroring.text.table import terminal_width

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase

Result = TypeVar("Result")

_UNCHANGED = "Nothing was changed."

# a span of time, as `timedelta` and as users write it
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_SPAN = re.compile(r"(\d{1,6})([mhd])", re.ASCII)

_PUBLISH_ANEW = (
    "It starts from nothing, so publish a full load of each table: `dbt run-operation "
    "mirror_rebuild` publishes the rows that Spark has. `dbt run --full-refresh` publishes those "
    "that all models compute anew, without what incremental models cannot compute again."
)


@dataclass(frozen=True)
class Kind:
    """The kind of value that an argument must have.

    Args:
        told: the kind in words, for messages
        allows: returns whether a value is of this kind
    """

    told: str
    allows: Callable[[Any], bool]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_list(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, (list, tuple)) and all(map(of, value))


NAME = Kind("a name that is not empty", _is_name)
NAMES = Kind(
    "a name that is not empty, or a list of such names",
    lambda value: _is_name(value) or (bool(value) and _is_list(value, _is_name)),
)
# True is an int
LIMIT = Kind("a whole number of 1 or more", lambda value: type(value) is int and value >= 1)
DAYS = Kind("a whole number from 1 to 30", lambda value: type(value) is int and 1 <= value <= 30)
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
FORMAT = Kind("`text` or `json`", lambda value: value in ("text", "json"))
SPAN = Kind(
    "a number of minutes, hours or days, such as `30m`, `2h` or `7d`",
    lambda value: isinstance(value, str) and bool(_SPAN.fullmatch(value)),
)
RESULTS = Kind(
    "the `results` of an on-run-end hook",
    lambda value: _is_list(value, lambda each: hasattr(each, "status") and hasattr(each, "node")),
)


def timedelta_of(span: str) -> timedelta:
    match = _SPAN.fullmatch(span)
    assert match, "the argument was checked"
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def operation(
    name: str, **kinds: Kind
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Let a function take the arguments of an operation as a mapping, its last argument.

    An argument that is left out may mean all, so NULL, an empty text (an unset variable of the
    shell) and an undefined variable of Jinja do not count as left out.

    Args:
        name: the name of the operation, for messages
        kinds: the kind of each keyword-only parameter of the function
    """

    def checked(function: Callable[..., Result]) -> Callable[..., Result]:
        parameters = signature(function).parameters
        needed = {each for each in kinds if parameters[each].default is Parameter.empty}

        @wraps(function)
        def run(*context: Any) -> Result:
            *others, given = context
            return function(*others, **_checked(name, kinds, needed, given))

        return run

    return checked


def _checked(
    name: str, kinds: Mapping[str, Kind], needed: set[str], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the arguments that were given."""
    arguments = {each: value for each, value in given.items() if not _is_left_out(each, value)}
    for each, value in arguments.items():
        if each not in kinds:
            allowed = ", ".join(f"`{each}`" for each in kinds) or "none"
            raise RefusedError(
                f"{name} has no argument `{shown(each)}`. Its arguments: {allowed}. {_UNCHANGED}",
                code="OM102",
            )
        if not kinds[each].allows(value):
            raise RefusedError(
                f"`{each}` of {name} is {shown(repr(value))}. It must be {kinds[each].told}. "
                f"{_UNCHANGED}",
                code="OM101",
            )
    for each in needed - arguments.keys():
        raise RefusedError(
            f"{name} needs `{each}`: {kinds[each].told}, as in "
            f"--args '{{{each}: ...}}'. {_UNCHANGED}"
        )
    return arguments


def _is_left_out(name: str, value: Any) -> bool:
    """Check whether a macro, which passes on each of its arguments, did not get this one."""
    hint = f"parameter {name!r} was not provided"  # Jinja's, which an undefined variable lacks
    return isinstance(value, Undefined) and value._undefined_hint == hint


@dataclass(frozen=True)
class RunOperations:
    """The run-operations of a dbt project. docs/operations.md documents their arguments.

    `table` is `schema.table`, the table alone, or the name or unique id of its node. Without it,
    an operation is for all tables.

    Args:
        command: the dbt command that runs one of them
        graph: dbt's graph of the project
        own_spark: returns the embedded Spark of the target
    """

    command: Command
    project: Project
    destination: Destination
    graph: Graph
    own_spark: Callable[[], SparkSetup]

    @cached_property
    def _tables(self) -> ProjectTables:
        return self.command.tables()

    @operation("mirror_status", format=FORMAT)
    def status(self, *, format: str = "text") -> Outcome:
        """Report the state of each mirrored table, and of the mirrored database in Fabric."""
        report, problem = self.destination.report()
        if format == "json":
            service = status.service_record(report, problem)
            records = [status.table_record(each) for each in self._tables.statuses(report)]
            return Outcome((status.to_json(service=service, tables=records),))
        if self.destination.onelake and report.status:
            problem = f"The mirrored database is {report.description}."
        heading = (problem, "") if problem else ()
        lines = status.status_lines(self._tables, report, terminal_width())
        return Outcome((*heading, *lines))

    @operation("mirror_check", older_than=SPAN, stale_after=SPAN, format=FORMAT)
    def check(
        self, *, older_than: str = "2h", stale_after: str | None = None, format: str = "text"
    ) -> Outcome:
        """Fail if a mirrored table needs attention."""
        late, stale = timedelta_of(older_than), timedelta_of(stale_after) if stale_after else None
        report, problem = self.destination.report()
        place, as_json = self.destination.place, format == "json"
        return status.check(self._tables, report, problem, place, late, stale, as_json)

    @operation("mirror_report")
    def report(self) -> Outcome:
        """Write the state and the history of each mirrored table to a page."""
        config = self.project.config
        heading = Heading(config.project_name, config.target_name, self.destination.place)
        return report(self._tables, self.destination, heading, Path(config.project_target_path))

    @operation("mirror_history", table=NAME, limit=LIMIT, format=FORMAT)
    def history(
        self, *, table: str | None = None, limit: int = 10, format: str = "text"
    ) -> Outcome:
        """Report the last batches of each mirrored table."""
        return status.history(self._tables, table, limit, format == "json")

    @operation("mirror_recover")
    def recover(self) -> Outcome:
        """Finish the batches that an earlier run of this dbt project committed."""
        return self.command.recovery.finish_all(self._tables)

    @operation("mirror_rebuild", table=NAME)
    def rebuild(self, *, table: str) -> Outcome:
        """Publish the current state of a table in Spark as a rebuild."""
        return self._publish(rebuild, table)

    @operation("mirror_restore", table=NAME)
    def restore(self, *, table: str | None = None) -> Outcome:
        """Bring back the rows that were published last from the mirrored tables.

        Those of `table` take the place of others that Spark has. Without it, only what Spark has
        lost is restored.
        """
        self.destination.restores = True

        def restore_one(mirrored: MirroredNode, _: Callable[[], None]) -> Restored | None:
            with self.command.connected(mirrored) as node:
                return restore(node, self.destination, replaces=table is not None)

        nodes = self._tables.mirrored if table is None else [self._tables.node(table)]
        outcome = held.in_turn(nodes, restore_one, self.project.config.threads)
        if outcome == Outcome(()):
            return Outcome(("Spark has the rows that were published last. Nothing was restored.",))
        return outcome

    @operation("mirror_repair", table=NAME)
    def repair(self, *, table: str) -> Outcome:
        """Publish the difference between a mirrored table and the rows that Spark has of it."""
        return self._publish(repair, table)

    def _publish(
        self, publish: Callable[[Node, Destination], MirrorResponse], table: str
    ) -> Outcome:
        mirrored = self._tables.node(table)
        node = self.command.node_of(mirrored.unique_id)
        with self.command.running(node):
            response = publish(node, self.destination)
        return Outcome((f"{mirrored.table}: {response}",))

    @operation("mirror_publish", table=NAME)
    def publish_held(self, *, table: str | None = None) -> Outcome:
        """Publish held nodes, whether or not their tests have passed."""
        return self._held_nodes().publish_all(table)

    @operation("mirror_publish_tested", results=RESULTS)
    def publish_tested(self, *, results: Sequence[Any]) -> Outcome:
        """Publish the held nodes whose tests have all passed in this command."""
        statuses = {result.node.unique_id: str(result.status) for result in results}
        gated = {name for name, node in self.graph["nodes"].items() if is_gated(node["config"])}
        return self._held_nodes().publish_tested(gated, statuses)

    def _held_nodes(self) -> held.HeldNodes:
        nodes, threads = self.graph["nodes"], self.project.config.threads
        connected = self.command.connected
        return held.HeldNodes(self._tables, nodes, self.destination, connected, threads)

    @operation("mirror_drop_orphans", dry_run=FLAG, schema=NAME, table=NAMES)
    def drop_orphans(
        self,
        *,
        dry_run: bool = True,
        schema: str | None = None,
        table: str | Sequence[str] | None = None,
    ) -> Outcome:
        """Drop the table folders that belong to no mirrored node any more, or only list them."""
        if not dry_run:
            self.destination.require_run()
        self.destination.has_changed = not dry_run
        return drop_orphans(self._tables, dry_run, schema, table, self.command.has_published)

    @operation("mirror_prepare")
    def prepare(self) -> Outcome:
        """Start and end the embedded Spark once, so that later starts are faster."""
        return Outcome((prepare_spark(self.own_spark()),))

    @operation("mirror_stop_spark")
    def stop_spark(self) -> Outcome:
        """End the embedded Spark that is ready for the next command."""
        return Outcome((stop_spark(self.own_spark().home),))

    @operation("mirror_replicate")
    def replicate(self) -> Outcome:
        """Apply the published files to the mirrored tables on this machine."""
        self.destination.require_run()
        lines, failed = replica.replicate(self.destination.landing_zone)
        told = f"Not replicated: {', '.join(failed)}"
        return Outcome(tuple(lines), (told,) if failed else ())

    def mirrored_database(self) -> DatabaseOperations:
        """Return the operations that create, change, start or stop the mirrored database."""
        self.destination.require_run()
        return DatabaseOperations(self.destination.database)


@dataclass(frozen=True)
class DatabaseOperations:
    """The run-operations of the mirrored database. Each yields the lines to print."""

    database: MirroredDatabase

    @operation(
        "mirror_create_database",
        default_schema=NAME,
        retention_days=DAYS,
        change_data_feed=FLAG,
    )
    def create(
        self,
        *,
        default_schema: str | None = None,
        retention_days: int | None = None,
        change_data_feed: bool | None = None,
    ) -> Iterator[str]:
        """Create the mirrored database, or change its definition if it exists.

        An argument that is left out keeps the current value. A new database gets Fabric's default.

        Args:
            default_schema: schema of tables without a schema. If it is set, every other table gets
                the schema of its folder
            retention_days: days for which Fabric keeps deleted files
            change_data_feed: whether the tables have Delta's change data feed. Fabric has it for
                all tables of a mirrored database or for none
        """
        given = {
            "defaultSchema": default_schema,
            "retentionInDays": retention_days,
            "enableDeltaChangeDataFeed": change_data_feed,
        }
        settings = {name: value for name, value in given.items() if value is not None}
        if self.database.create(settings):
            yield f"{self._named} was created."
            yield "Publish the first files, then start it: dbt run-operation mirror_start"
            return
        changes = self.database.update(settings)
        if not changes:
            yield f"{self._named} already exists with this definition. Nothing was changed."
            return
        told = [
            f"{name} {'not set' if old is None else shown(old)} -> {new}"
            for name, (old, new) in changes.items()
        ]
        yield f"{self._named} already exists. Its definition was changed: {'; '.join(told)}"

    @operation("mirror_definition")
    def definition(self) -> Iterator[str]:
        """Print `mirroring.json`, as Git integration stores it."""
        yield from json.dumps(self.database.definition(), indent=2).splitlines()

    @operation("mirror_start")
    def start(self) -> Iterator[str]:
        """Start the mirrored database."""
        before = self.database.start()
        if before == "Running":
            yield f"{self._named} is already running. Nothing was changed."
            return
        yield f"{self._named} was started."
        if before == "Stopped":
            yield _PUBLISH_ANEW

    @operation("mirror_stop", confirm=NAME)
    def stop(self, *, confirm: str | None = None) -> Iterator[str]:
        """Stop the mirrored database, if `confirm` is its name."""
        name = self.database.name
        if confirm != name:
            raise CompilationError(
                f"Stopping {name!r} stops every table in it. When it is started again, it starts "
                "from nothing with the files that are still in the landing zone: the rows "
                "applied before are lost until every table is published anew. To repair a single "
                "table, use `dbt run-operation mirror_rebuild` instead. Nothing was changed. To "
                f"stop it, add --args '{{confirm: {name}}}'"
            )
        if not self.database.stop():
            yield f"{self._named} is not running. Nothing was changed."
            return
        yield f"{self._named} was stopped."
        yield f"When it is started: {_PUBLISH_ANEW}"

    @property
    def _named(self) -> str:
        return f"The mirrored database {self.database.name!r}"
