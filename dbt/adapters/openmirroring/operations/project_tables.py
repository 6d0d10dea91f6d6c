"""The mirrored tables of a dbt project, in its graph and in the landing zone.

A landing zone may serve several targets, people and dbt projects, and the name of a project does
not tell them apart: `dbt init` proposes one, and every checkout has it. Whether a model of another
target is enabled is not known either. So a table without a node belongs to this target only if the
journals show it: this target has published it last, in one of its schemas, and in a command that
has also published tables that have a node here, at least indirectly.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.inventory import (
    LandedTable,
    drop_table,
    landed_table,
    pending_batches,
    published_folders,
    table_folders,
)
from dbt.adapters.openmirroring.landing_zone.layout import PUBLISHED, TableFolder
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest
from dbt.adapters.openmirroring.landing_zone.storage import Readable, Storage
from dbt.adapters.openmirroring.service.monitoring import is_listed, loss
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport, is_behind
from dbt.adapters.openmirroring.text.codes import with_code
from dbt.adapters.openmirroring.text.shown import shown
from dbt.adapters.openmirroring.text.table import terminal_width, text_table

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.dbt_core.project import Config

State = Literal[
    "published",
    "not published",
    "missing",
    "unfinished",
    "held",
    "orphan",
    "elsewhere",
    "blocked",
]

# tables that are read at the same time
_READERS = 8

# a text that YAML reads as a name
_PLAIN = re.compile(r"[a-zA-Z_][\w.-]*", re.ASCII)

# the resource types of dbt that have a relation of their own
NODES = ("model", "seed", "snapshot")
MIRRORED = ("table", "incremental", "seed", "snapshot")

# what a node is that was mirrored, by its materialization
_UNMIRRORED = {"view": "a view now", "ephemeral": "ephemeral now"}


def is_mirrored(config: Config, kinds: Collection[str] = MIRRORED) -> bool:
    """Check whether a node with this configuration is mirrored.

    Args:
        kinds: the materializations that publish
    """
    return config.get("materialized") in kinds and config.get("mirror") is not False


@dataclass(frozen=True)
class MirroredNode:
    """A mirrored node.

    Args:
        schema, identifier: schema and identifier of its relation in Spark
        schema_folder: whether its table folder is in the folder of its schema
    """

    unique_id: str
    name: str
    schema: str
    identifier: str
    schema_folder: bool

    @property
    def table(self) -> str:
        """The name of the table in messages, which is also that of its table folder."""
        return f"{self.schema}.{self.identifier}" if self.schema_folder else self.identifier

    @property
    def folder(self) -> TableFolder:
        """Its table folder.

        Raises:
            MirrorError: if its name is not allowed there
        """
        return TableFolder(self.schema if self.schema_folder else "", self.identifier)


@dataclass(frozen=True)
class TableStatus:
    """The state of a table.

    Args:
        table: `schema.table`, or the table alone at the root of the landing zone
        landed: the records in the landing zone; None if its name is not allowed there
        note: a line that the user should see; empty if there is no problem
        node: unique id of its node here; None if it has none
        report: the report of the service
    """

    table: str
    state: State
    landed: LandedTable | None
    note: str = ""
    node: str | None = None
    report: ServiceReport = ServiceReport()  # noqa: RUF009 - it is frozen

    @property
    def schema(self) -> str:
        """The schema of the relation in Spark that was published last; empty if none was."""
        return self.journal.batch.owner.schema if self.journal else ""

    @property
    def journal(self) -> Journal | None:
        return self.landed.journal if self.landed else None

    @property
    def pending(self) -> Manifest | None:
        return self.landed.pending if self.landed else None

    @property
    def published_at(self) -> datetime | None:
        return datetime.fromisoformat(self.journal.published_at) if self.journal else None

    @property
    def path(self) -> str:
        """Its table folder in the landing zone."""
        return self.landed.folder.path if self.landed else self.table

    @property
    def mirrored_table(self) -> str:
        return self.landed.folder.mirrored_table if self.landed else self.table

    @property
    def applied(self) -> TableReport:
        """What the service reports about this table."""
        return self.report.tables.get(self.mirrored_table, TableReport())

    @property
    def is_behind(self) -> bool:
        """Whether the service has yet to apply the last files of this table."""
        if not self.report.status or not self.journal:
            return False
        return is_behind(self.applied, self.journal.files_at)

    @cached_property
    def loss(self) -> str:
        """How the service has lost rows of this table; empty if it has not."""
        if not self.report.status or not self.landed or not self.journal or self.pending:
            return ""
        return loss(self.landed.folder, self.journal, self.landed.files, self.report)


@dataclass(frozen=True)
class Outcome:
    """The result of an operation.

    Args:
        lines: the lines to print
        failed: one line with the reason for each table where the operation failed
    """

    lines: tuple[str, ...]
    failed: tuple[str, ...] = ()


class ProjectTables:
    """The mirrored tables of a dbt project.

    Args:
        storage: the landing zone, which several projects may share
        schema: the schema of the target
        nodes: all enabled nodes, as in the graph, and other relations that dbt makes
        target: the name of the target
        kinds: the materializations that publish
        disabled: the unique ids of disabled nodes
    """

    def __init__(
        self,
        storage: Storage,
        project: str,
        schema: str,
        nodes: Iterable[Mapping[str, Any]],
        target: str = "",
        kinds: Collection[str] = MIRRORED,
        disabled: Collection[str] = (),
    ) -> None:
        self.storage = storage
        self._project = project
        self._nodes = list(nodes)
        self._target = target
        self._disabled = disabled
        self._schemas = {schema, *(str(node["schema"]) for node in self._nodes)}
        self.mirrored = mirrored_nodes(self._nodes, kinds)

    def statuses(
        self,
        report: ServiceReport = ServiceReport(),  # noqa: B008 - it is frozen
        has_published: Callable[[LandedTable], bool] = lambda _: True,
    ) -> list[TableStatus]:
        """Return the state of each mirrored node, and of other tables of this project.

        Args:
            report: the report of the service
            has_published: returns whether this target has published a table of one of its nodes;
                if nobody asks, it has published each that this project has
        """
        files = self.storage.at_once()
        # first, because its error makes it needless to look at single tables
        folders = table_folders(files)
        marked = {entry.name for entry in files.list(f"{PUBLISHED}/{self._project}")}

        def was_published(folder: TableFolder) -> bool:
            return str(folder) in marked or is_listed(folder, report)

        def status_of(node: MirroredNode) -> TableStatus:
            status = self._node_status(files, node, was_published)
            if status.state != "missing":
                return status
            # a rebuild drops the folder, and may have done so while the files were listed
            return self._node_status(self.storage, node, was_published)

        with ThreadPoolExecutor(_READERS) as pool:
            statuses = list(pool.map(status_of, self.mirrored))
            landed = [status.landed for status in statuses if status.landed]
            others = folders - {table.folder for table in landed}
            tables = list(pool.map(lambda folder: landed_table(files, folder), others))
        # on a storage that ignores case, two names may mean one folder
        batches = {table.journal.batch.id for table in landed if table.journal}
        gone = []
        for table in tables:
            if table.journal and table.is_of(self._project):
                if table.journal.batch.id not in batches:
                    gone.append(table)
            elif table.is_pending_of(self._project):
                statuses.append(TableStatus(str(table.folder), "unfinished", table))
        if gone:
            here = [t for t in landed if t.is_of(self._project) and has_published(t)]
            statuses += self._without_node(gone, here)
        statuses.sort(key=lambda status: status.table)
        return [replace(status, report=report) for status in statuses]

    def left(self, has_published: Callable[[LandedTable], bool]) -> list[TableStatus]:
        """Return the tables that this target has published, and that no node here publishes.

        It may be unknown whether another project of the same name publishes a table. Then it is
        returned only if a node here has to do with it, or Spark has its rows. In contrast to
        `statuses`, only journals are read, and those of the nodes only if there is such a table.

        Args:
            has_published: returns whether Spark has the rows of a table that were published last
        """
        ours = set()
        for node in self.mirrored:
            with suppress(MirrorError):  # the node reports it
                ours.add(node.folder)
        others = self._journals_of(set(published_folders(self.storage, self._schemas)) - ours)
        gone = [table for table in others if table.is_of(self._project)]
        here = self._journals_of(ours) if gone else []
        # on a storage that ignores case, two names may mean one folder
        batches = {journal.batch.id for journal in _journals(here)}
        gone = [t for t in gone if t.journal and t.journal.batch.id not in batches]
        here = [table for table in here if table.is_of(self._project)]
        return [
            status
            for status in self._without_node(gone, here)
            if status.state == "orphan" or self._may_be_ours(status, has_published)
        ]

    def _journals_of(self, folders: Iterable[TableFolder]) -> list[LandedTable]:
        """Read the journals of tables. One that is missing or damaged says nothing."""

        def read(folder: TableFolder) -> LandedTable | None:
            with suppress(MirrorError):
                return LandedTable(folder, True, Journal.read(self.storage, folder.journal))
            return None

        with ThreadPoolExecutor(_READERS) as pool:
            tables = list(pool.map(read, sorted(folders, key=str)))
        return [table for table in tables if table and table.journal]

    def _may_be_ours(
        self, status: TableStatus, has_published: Callable[[LandedTable], bool]
    ) -> bool:
        """Check whether this target has probably published a table that may be of others."""
        assert status.landed
        assert status.journal
        owner = status.journal.batch.owner
        if owner.target != self._target or owner.schema not in self._schemas:
            return False
        known = {*self._disabled, *(node["unique_id"] for node in self._nodes)}
        is_known = owner.node in known or self._namesake(status.landed) is not None
        return is_known or has_published(status.landed)

    def is_held(self, status: TableStatus) -> bool:
        """Check whether rows of a table are held by this project, whatever else its state is."""
        return status.landed is not None and status.landed.is_held_of(self._project)

    def unfinished(self) -> list[Manifest]:
        """Return the batches that this project has committed, but not completed."""
        pending = pending_batches(self.storage)
        ours = [each for each in pending if each.batch.owner.project == self._project]
        return sorted(ours, key=lambda manifest: str(manifest.table))

    def node(self, table: str) -> MirroredNode:
        """Return the mirrored node of a table.

        Args:
            table: `schema.table`, the table alone, or the node's name or unique id

        Raises:
            DbtRuntimeError: if no mirrored node, or more than one, matches
        """
        matching = [
            node
            for node in self.mirrored
            if table in (node.table, node.identifier, node.name, node.unique_id)
        ]
        if len(matching) == 1:
            return matching[0]
        choices = ", ".join(sorted(node.table for node in matching or self.mirrored)) or "none"
        if matching:
            raise DbtRuntimeError(f"{table!r} is more than one mirrored table: {choices}.")
        raise DbtRuntimeError(
            f"{table!r} is not a mirrored table of this project. Its mirrored tables: {choices}."
        )

    def _node_status(
        self, files: Readable, node: MirroredNode, was_published: Callable[[TableFolder], bool]
    ) -> TableStatus:
        try:
            folder = node.folder
        except MirrorError as error:
            return TableStatus(node.table, "blocked", None, error.msg, node.unique_id)
        table = landed_table(files, folder)
        state, note = self._state_of(table, was_published)
        return TableStatus(node.table, state, table, note, node.unique_id)

    def _state_of(
        self, table: LandedTable, was_published: Callable[[TableFolder], bool]
    ) -> tuple[State, str]:
        if table.problem:
            return "blocked", table.problem
        records = [record.batch.owner for record in (table.journal, table.pending) if record]
        for owner in [*records, *([table.held.owner] if table.held else [])]:
            if owner.project != self._project:
                project, node = (shown(owner.project), shown(owner.node))
                note = f"belongs to the dbt project {project!r} ({node})"
                return "blocked", with_code(note, "OM402")
        if table.pending:
            return "unfinished", ""
        if not table.exists and was_published(table.folder):
            return "missing", f"it was published, but {table.folder.path} is gone"
        if table.held:
            return "held", shown(table.held.held.why)
        if table.held_problem:
            return "held", table.held_problem
        if table.journal:
            return "published", ""
        if table.exists:
            return (
                "blocked",
                f"{table.folder.path} has no _journal.json: dbt-openmirroring did not create it",
            )
        return "not published", ""

    def _without_node(
        self, gone: Sequence[LandedTable], here: Sequence[LandedTable]
    ) -> Iterator[TableStatus]:
        """Tell the orphans from the tables that somebody else may publish."""
        together = _published_together(_journals(here), _journals(gone))
        for table, journal in zip(gone, _journals(gone), strict=True):
            why = self._why_orphan(table, journal.batch.owner.node)
            other = self._other_publisher(journal, together)
            if other:
                yield TableStatus(str(table.folder), "elsewhere", table, f"{other}; here, {why}")
            else:
                yield TableStatus(str(table.folder), "orphan", table, why)

    def _other_publisher(self, journal: Journal, together: Collection[str]) -> str:
        """Return why somebody else may publish a table without a node; empty if nobody does."""
        owner = journal.batch.owner
        if owner.target != self._target:
            return f"the target {shown(owner.target)!r} published it last"
        if owner.schema not in self._schemas:
            return f"this target has no schema {shown(owner.schema)!r}"
        if journal.batch.id not in together:
            return (
                "no command published it together with a table that is here, so it may be of "
                f"another project {self._project!r}"
            )
        return ""

    def _why_orphan(self, table: LandedTable, unique_id: str) -> str:
        """Return what became of the node that has published a table."""
        tables = {node.unique_id: node.table for node in self.mirrored}
        if unique_id in tables:
            return f"{unique_id} is {tables[unique_id]} now"
        for node in self._nodes:
            if node["unique_id"] == unique_id:
                kind = node["config"].get("materialized")
                return f"{unique_id} is {_UNMIRRORED.get(kind, 'not mirrored any more')}"
        gone = f"{shown(unique_id)} is {'disabled' if unique_id in self._disabled else 'gone'}"
        namesake = self._namesake(table)
        if not namesake:
            return gone
        other, kind = namesake["unique_id"], namesake["config"].get("materialized")
        what = tables.get(other, "a view" if kind == "view" else "not mirrored")
        return f"{gone}, and {other}, which has its name now, is {what}"

    def _namesake(self, table: LandedTable) -> Mapping[str, Any] | None:
        """Return the node whose relation has the name of a table without a mirrored node."""
        assert table.journal
        place = (table.journal.batch.owner.schema.lower(), table.folder.identifier.lower())
        return next(
            (
                node
                for node in self._nodes
                if node["resource_type"] in NODES
                and node["config"].get("materialized") != "ephemeral"
                and (str(node["schema"]).lower(), str(node["alias"]).lower()) == place
            ),
            None,
        )


def _journals(tables: Iterable[LandedTable]) -> list[Journal]:
    return [table.journal for table in tables if table.journal]


def _published_together(here: Iterable[Journal], others: Iterable[Journal]) -> set[str]:
    """Return the last batches of tables that one command published with a table that is here.

    A table that was published together with one of these counts too.
    """

    def commands_of(journal: Journal) -> set[str]:
        return {batch.invocation_id for batch in journal.batches} - {""}

    commands = {command for journal in here for command in commands_of(journal)}
    together: set[str] = set()
    left = list(others)
    while more := [journal for journal in left if not commands.isdisjoint(commands_of(journal))]:
        together.update(journal.batch.id for journal in more)
        commands.update(command for journal in more for command in commands_of(journal))
        left = [journal for journal in left if journal not in more]
    return together


def mirrored_nodes(
    nodes: Iterable[Mapping[str, Any]], kinds: Collection[str] = MIRRORED
) -> list[MirroredNode]:
    """Return the nodes of the graph that are mirrored."""
    return [
        MirroredNode(
            node["unique_id"],
            node["name"],
            str(node["schema"]),
            str(node["alias"]),
            node["config"].get("schema_folder") is not False,
        )
        for node in nodes
        if node["resource_type"] in NODES and is_mirrored(node["config"], kinds)
    ]


def utc_text(utc: datetime | None) -> str:
    """Return a time as the operations print it; empty without one."""
    return f"{utc:%Y-%m-%d %H:%M:%S}" if utc else ""


def drop_orphans(
    tables: ProjectTables,
    dry_run: bool,
    schema: str | None,
    table: str | Sequence[str] | None,
    has_published: Callable[[LandedTable], bool],
) -> Outcome:
    """Drop the table folders that no longer belong to a mirrored node.

    A table that another target, or another project of the same name, may publish is dropped only
    if `table` names it.

    Args:
        dry_run: whether to list them only
        schema: the schema of the folders to drop; None for all schemas of this target
        table: `schema.table`, or several of them, to drop; None for all
        has_published: returns whether Spark has the rows of a table that were published last

    Raises:
        DbtRuntimeError: if a table in `table` is no orphan
    """
    # Spark need not be asked about tables that are named
    statuses = tables.statuses() if table else tables.statuses(has_published=has_published)
    candidates = [each for each in statuses if each.state in ("orphan", "elsewhere")]
    given: dict[str, str | Sequence[str]] = {}
    if schema is not None:
        candidates = [each for each in candidates if each.schema == schema]
        given["schema"] = schema
    if table is not None:
        names = [table] if isinstance(table, str) else table
        candidates = _named(candidates, names)
        given["table"] = names if len(names) > 1 else names[0]
    ours = [each for each in candidates if table is not None or each.state == "orphan"]
    others = [each for each in candidates if each not in ours]
    lines = _listed(ours, "orphan")
    failed: list[str] = []
    if not ours:
        where = "" if schema is None else f" in the schema {shown(schema)!r}"
        lines.append(f"There are no orphans{where}.")
    elif dry_run:
        lines.append(f"Nothing was dropped. To drop them, in the mirror too: {_command(given)}")
    else:
        dropped = [status.table for status in ours if _drop(tables.storage, status, failed)]
        told = f"Dropped {', '.join(dropped)}. Relations in Spark stay."
        lines.append(told if dropped else "Nothing was dropped.")
    if others:
        lines += _listed(others, "not of this target")
        lines.append("Each of these is dropped only if its name is given, as `table`.")
    return Outcome(tuple(lines), tuple(failed))


def _named(orphans: Sequence[TableStatus], names: Collection[str]) -> list[TableStatus]:
    by_name = {status.table: status for status in orphans}
    missing = [shown(name) for name in names if name not in by_name]
    if missing:
        raise DbtRuntimeError(
            f"{', '.join(missing)}: no orphan. Nothing was dropped. `dbt run-operation "
            "mirror_drop_orphans` lists the orphans."
        )
    return [by_name[name] for name in names]


def _listed(tables: Sequence[TableStatus], headline: str) -> list[str]:
    rows = [(status.table, status.note) for status in tables]
    return list(text_table([(headline, ""), *rows], (), terminal_width())) if rows else []


def _drop(storage: Storage, orphan: TableStatus, failed: list[str]) -> bool:
    assert orphan.landed, "an orphan is in the landing zone"
    try:
        dropped = drop_table(storage, orphan.landed)
    except MirrorError as error:
        failed.append(f"{orphan.table}: {error.msg}")
        return False
    if not dropped:
        failed.append(f"{orphan.table} was published meanwhile, and was not dropped.")
    return dropped


def _command(given: Mapping[str, str | Sequence[str]]) -> str:
    arguments = ", ".join(["dry_run: false", *(f"{k}: {_yaml(v)}" for k, v in given.items())])
    return f"dbt run-operation mirror_drop_orphans --args {shlex.quote(f'{{{arguments}}}')}"


def _yaml(value: str | Sequence[str]) -> str:
    if not isinstance(value, str):
        return f"[{', '.join(map(_yaml, value))}]"
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
