"""How a run goes on with its table: what the protocol asks for, and what a user is told.

A record of the last publication has the state that it left. If the snapshot is in another state
now, a hook at the end of a run, a package or a person has written to it.

Code of the user runs before and after a build, and may change the relation. A publication is
compared with the rows that were published last, so these must stay readable until then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination, is_another_zone
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError, SnapshotMismatchError
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable, compute_anew
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest
from dbt.adapters.openmirroring.node.advance import Table
from dbt.adapters.openmirroring.node.mirrored_rows import is_of, rows_as_published
from dbt.adapters.openmirroring.node.node import Node, refuse_stale_compilation
from dbt.adapters.openmirroring.node.plan import FULL_REFRESH
from dbt.adapters.openmirroring.node.snapshot.reuse import MERGING_FORMATS
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    ScratchTables,
    folder_lost,
    make_way,
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import (
    has_published_columns,
    move,
    row_changes_since,
    snapshot_state,
)
from dbt.adapters.openmirroring.node.user_code import first_word, may_change, without_comments
from dbt.adapters.openmirroring.node.warehouse import logger
from dbt.adapters.openmirroring.protocol.actions import (
    Action,
    Done,
    Look,
    Note,
    Rebuild,
    Refused,
    Start,
    Step,
)
from dbt.adapters.openmirroring.protocol.facts import (
    PUBLISHED,
    Baseline,
    Beside,
    Earlier,
    EndCode,
    Held,
    Intent,
    Kept,
    Marks,
    Missing,
    Publish,
    Relation,
    Restore,
    Rows,
    RunStatement,
)
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    VERSION_PROPERTY,
    ZONE_PROPERTY,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.spark.table import TableDescription
from dbt.adapters.openmirroring.text.errors import RefusedError

# the first words of statements that may end the history of a table, with its earlier versions
_REPLACING = {"create", "drop", "replace"}

# the state of a table that keeps earlier versions
_NUMBERED = re.compile(r"version:(\d+)")
# the state of no table
_CHANGED = "changed"


def intent_of(node: Node, intent: type[Publish] = Publish) -> Publish:
    """Return what a run wants of a node by its configuration."""
    return intent(
        FULL_REFRESH if node.is_full_refresh else None,
        extends=node.reads_itself,
        adopts=node.options.on_foreign_changes == "publish",
        is_held=node.options.is_held,
        has_hooks=node.has_post_hooks,
    )


class Attempt(Table):
    """An attempt of a run at the table of its node.

    Args:
        records: those of the publication; in a dry run, they are only read
        target: the relation, if it is not that of the node

    Attributes:
        rebuild: why the table is rebuilt; None if the changes decide
        finished: the manifest of an earlier run's batch that has just been finished, if any
    """

    def __init__(
        self,
        node: Node,
        destination: Destination,
        records: PublishedTable,
        scratch: ScratchTables,
        target: OpenMirroringRelation | None = None,
    ) -> None:
        publication = records if isinstance(records, Publication) else None
        super().__init__(node.warehouse, target or node.target, publication, journal=records.last)
        self.node, self.destination = node, destination
        self.records, self.scratch = records, scratch
        self.properties = {ZONE_PROPERTY: destination.zone_id}
        self.rebuild: str | None = None
        self.finished: Manifest | None = None
        self._refused: DbtRuntimeError | None = None
        # the table before code of the user, and its state; and the state that it has as long as no
        # row of it has changed
        self._at: tuple[OpenMirroringRelation, TableDescription] | None = None
        self._before: str | None = None
        self._unchanged: str | None = None
        self._base: Baseline = Missing()
        # whether a statement of this code may have changed the relation, whatever rows it has
        self._is_named = False

    @property
    def marks_of_build(self) -> dict[str, str]:
        """The properties by which the build of this attempt is known."""
        return {BUILD_PROPERTY: self.records.batch_id, **self.properties}

    def held_rows(self, why: str) -> Held:
        """Return the record that the build of this attempt is ahead."""
        return Held(self.records.batch_id, self.rebuild, why=why)

    def start(self, intent: Intent) -> Start | Done:
        """Let the protocol decide whether and how this attempt goes on."""
        last = self.records.last
        is_own = last is not None and is_of(self.node, last)
        self._know(is_own=is_own, has_finished=self.finished is not None)
        end = self.advance(intent)
        self.rebuild = end.reason if isinstance(end, Rebuild) else None
        return end

    def go_on(self, intent: Intent) -> None:
        """Change where rows are, and find those again that were published last."""
        self.advance(intent)
        if ahead := self.look().ahead:
            self.rebuild = ahead.rebuild

    def run_code(self, extends: bool) -> None:
        """Run code of the user before the build.

        Args:
            extends: whether the SQL of the node was compiled to extend the published rows
        """
        found, description = self.relation, self.description
        self._at = (found, description) if found and description else None
        self._before = self._unchanged = self._now()
        # an Iceberg table that never had rows has no version
        number = _NUMBERED.fullmatch(self._before or "")
        version = self.read_from.version if self.read_from else number and number[1]
        self._know(version=version, is_touched=None)
        before = self.look()
        self._base, self._is_named = before.baseline, False

        def allows(statement: str) -> bool:
            if may_change(statement, self.target):
                self._know(is_touched=None)
                word = first_word(without_comments(statement.lower()))
                self.advance(RunStatement(word in _REPLACING))
                self._is_named = True
            return True

        self.node.run_code_before(allows)
        self._know(is_touched=None)
        self.start(EndCode(before.baseline, before.marked.build, extends))
        self.look()

    def verify(self, rebuilds: bool) -> Journal | None:
        """Check that journal, table folder and snapshot belong together, and return the first."""
        return self.records.verify(self.build, rebuilds, self.relation is not None)

    # What the protocol asks for

    def _carry_out(self, action: Action, intent: Intent) -> None:
        match action:
            case Look.AT_OTHER_FOLDERS:
                self._know(elsewhere=self._elsewhere())
            case Look.AT_ROWS:
                self._look_at_rows(intent)
            case Look.AT_CODE:
                self._look_at_code()
            case Step.ADOPT:
                self._adopt()
                self._know(rows=Rows.PUBLISHED)
            case Step.COPY:
                self._copy()
            case Step.FORGET_VERSION:
                self.warehouse.unmark(self.target, [VERSION_PROPERTY])
                self.marks = replace(self.marks or Marks(), noted=None)
            case Note(None):
                is_same = self._now() == self._before
                super()._carry_out(action, intent)
                self._unchanged = self._now() if is_same else _CHANGED
            case _:
                super()._carry_out(action, intent)

    def _look_at_rows(self, intent: Intent) -> None:
        # Hooks and holds keep these rows as those that were published, before anything compares
        # them. No later run could take that back.
        counts = isinstance(intent, Publish) and (
            intent.adopts or intent.is_held or self.node.has_own_code
        )
        lost = DbtRuntimeError if isinstance(intent, Restore) else SnapshotMismatchError
        self._know(rows=Rows.PUBLISHED)
        try:
            self._verify_state(counts)
        except lost as error:
            self._know(rows=Rows.FOREIGN)
            self._refused = error

    def _verify_state(self, counts_unknown: bool) -> None:
        """Check that nobody else has changed the rows that were published last.

        A column that somebody has added and filled is no such change: its values were never
        published. Then the rows are read from the version of the table that was published, if its
        format keeps versions.

        Args:
            counts_unknown: whether to count the rows if the state of the snapshot is unknown

        Raises:
            SnapshotMismatchError: if somebody else has changed the rows
        """
        records, relation, description = self.records, self.relation, self.description
        journal, warehouse, marks = records.last, self.warehouse, self.marks or Marks()
        assert journal, "a rule asks for them"
        assert relation, "it has the build of the journal"
        assert description, "it is the present version of a table"
        expected, found = journal.snapshot_state, None
        if expected:
            found = snapshot_state(warehouse, relation, description)
        if found is None and counts_unknown:
            records.verify_rows(journal, warehouse.count_rows(relation))
        # a restored table counts its versions anew, so it may come to the number of the old one
        expected = marks.restored_state(journal.batch.build) or expected
        if found is None or found == expected:
            return
        expected = self._state_left(relation, description, journal)
        if found == expected:
            return
        kind, _, version = str(expected).partition(":")
        if kind == "version" and description.layout.format in MERGING_FORMATS:
            if row_changes_since(warehouse, relation, description, version) == []:
                return
            if not has_published_columns(description, journal):
                self.read_from = relation.incorporate(version=version)
                self._forget()
                return
        left = replace(journal, snapshot_state=expected)
        records.verify_state(left, found, lambda: self._count(relation))

    def _state_left(
        self, relation: OpenMirroringRelation, description: TableDescription, journal: Journal
    ) -> str | None:
        """Return the state in which a publication or a restore has left the snapshot.

        The journal cannot have that of a restore, nor that of a change in place whose run was
        killed.
        """
        restored = self.warehouse.fresh_marks(relation).restored_state(journal.batch.build)
        kind, _, version = (restored or str(journal.snapshot_state)).partition(":")
        if kind != "before" or description.layout.format not in MERGING_FORMATS:
            return restored or journal.snapshot_state
        changes = row_changes_since(self.warehouse, relation, description, version)
        return f"version:{changes[0] if changes else version}"

    def _count(self, table: OpenMirroringRelation) -> int:
        """Return the number of rows of a table; 0 if Spark cannot read them."""
        try:
            return self.warehouse.count_rows(table)
        except DbtRuntimeError as error:  # only a message needs the number
            logger.debug(f"{table}: {error.msg}")
            return 0

    def _adopt(self) -> None:
        """Find the rows that were published last, whatever others have made of the relation."""
        build = self.build
        assert build, "only what was published can have changed since"
        version = self._published_version()
        if version is None:
            rows = rows_as_published(self.node, self.destination, self.records, self.scratch)
        else:
            rows = self.target.incorporate(version=version)
        if self.destination.dry_run:
            self.read_from = rows
        elif version is None:
            move(self.warehouse, rows, table_beside(self.target, PUBLISHED, build))
        else:
            self._note(Note(None, build, version))

    def _published_version(self) -> str | None:
        """Return the version of the snapshot that has the published rows, if any."""
        journal, relation, description = self.records.last, self.relation, self.description
        if journal is None or relation is None or description is None:
            return None
        kind, _, version = str(self._state_left(relation, description, journal)).partition(":")
        if kind != "version":
            return None
        past: OpenMirroringRelation = relation.incorporate(version=version)
        return version if self._count(past) == journal.batch.table_rows else None

    def _elsewhere(self) -> str:
        """Return how the rows of Spark were published elsewhere; empty if they were not.

        They were published to another folder, or to another landing zone.
        """
        journal, build, node = self.records.last, self.build, self.node
        assert journal, "a table without a journal has left no folder"
        assert build, "rows without a build were not published"
        former = self.records.former_folder(build)
        if former:
            return f"the table folder was {former.path} before"
        # other nodes extend rows, which may be those of another warehouse
        if node.reads_itself or node.is_history or self.relation is None:
            return ""
        if any(build in (batch.id, batch.build) for batch in journal.history):
            return ""  # they were published here, and somebody else has published since
        zone_id = self.destination.zone_id
        found = self.warehouse.properties(self.relation).get(ZONE_PROPERTY, zone_id)
        is_elsewhere = is_another_zone(found, zone_id)
        return "was published to another landing zone meanwhile" if is_elsewhere else ""

    # Code of the user

    def _now(self) -> str | None:
        """Return the state of the relation; None if it is unknown, or there is none any more."""
        if self._at is None:
            return None
        try:
            return snapshot_state(self.warehouse, *self._at)
        except DbtDatabaseError:  # a hook has dropped it
            return None

    def _look_at_code(self) -> None:
        facts, read_from = self.facts, self.read_from
        is_same = self._now() == self._unchanged
        is_kept = facts.baseline != self._base or isinstance(self._base, Earlier)
        is_beside = isinstance(self._base, Kept)
        # a table that was dropped and created again may have the version that it had before
        is_as_before = is_same and not is_kept and (is_beside or self._known.version is None)
        if is_as_before and not self._is_named:
            self._forget()  # columns may have changed
            self._know(is_touched=False)
            return
        self.look_again()
        is_there = self.facts.relation is Relation.THERE
        is_marked = is_there and self.marks and self.marks.build == facts.marked.build
        is_own = is_marked and is_same and self._before is not None
        is_known = bool(is_own or (is_as_before and is_beside))
        self._know(is_touched=not is_known, rows=facts.rows if is_known else Rows.FOREIGN)
        if is_known:
            self.read_from = read_from

    def _copy(self) -> None:
        """Copy them, without what statements have changed since."""
        relation, build = self.relation, self.facts.last
        assert relation, "there are rows"
        assert build, "they were published"
        rows = relation.incorporate(version=relation.version or self._known.version)
        copy = table_beside(self.target, PUBLISHED, build)
        make_way(self.warehouse, copy)
        query, properties = f"select * from {rows}", {BUILD_PROPERTY: build}
        with self.reading(rows):
            self.warehouse.run("mirror_keep", table=copy, query=query, properties=properties)
        self.warehouse.adapter.cache_added(copy.carrying(build))

    @contextmanager
    def reading(self, rows: OpenMirroringRelation | None) -> Iterator[None]:
        """Read the rows that were published last, perhaps those of an earlier version of a table.

        Raises:
            SnapshotMismatchError: if Spark cannot read that version any more
        """
        try:
            yield
        except DbtDatabaseError as error:
            journal = self.records.last
            if rows is None or rows.version is None or journal is None:
                raise
            try:
                self.warehouse.count_rows(rows)
            except DbtDatabaseError:
                raise SnapshotMismatchError(
                    f"Version {rows.version} of {self.target} has the rows that were published "
                    "last, and Spark cannot read it: somebody has removed old versions of the "
                    "table (VACUUM, or the expiry of snapshots). Nothing was published. "
                    f"{compute_anew(self.node.owner.node, journal.batch.table_rows)}",
                    code="OM427",
                ) from error
            raise

    # What a user is told

    def _refusal(self, why: Refused, intent: Intent) -> DbtRuntimeError:
        target = self.target
        match why:
            case Refused.FOLDER_LOST:
                lost = None if None in self._gone else Beside(PUBLISHED, str(self.facts.last))
                table = self._beside[lost] if lost else target
                return folder_lost(self._gone[lost], table, target)
            case Refused.FOREIGN:
                assert self._refused, "a look has found it"
                return self._refused
            case Refused.COMMITTED:
                assert self.manifest, "it was committed"
                return MirrorError(
                    f"An earlier run has committed batch {self.manifest.batch.id} of {target}, "
                    "and was interrupted. A dry run changes nothing, so it cannot finish it. Run "
                    "`dbt run-operation mirror_recover` with a target that is no dry run."
                )
            case Refused.STALE:
                return refuse_stale_compilation()
            case Refused.OUT_OF_STEP:
                self.verify(rebuilds=False)
            case Refused.RECORD_DAMAGED:
                assert isinstance(self.records, Publication), "a dry run publishes no held rows"
                self.records.check_held_record()
            case Refused.OTHER_BUILD:
                return RefusedError(
                    f"Another run has built {target} since its tests started, so it stays held. "
                    "Run its tests again.",
                    code="OM320",
                )
            case Refused.CODE_DROPPED:
                return RefusedError(
                    f"A hook has dropped {target}, but the SQL of this run was compiled to extend "
                    "its rows. Nothing was published. Remove the hook and run again; for a table "
                    "that is built anew in each run, set `materialized: table`.",
                    code="OM414",
                )
            case Refused.DROPPED | Refused.REPLACED_BY_VIEW:
                what = f"dropped {target}, so there is nothing to publish"
                if why is Refused.REPLACED_BY_VIEW:
                    what = f"replaced {target} by a view, and views are not mirrored"
                return CompilationError(
                    f"A post-hook has {what}. The mirror keeps the rows that were published last. "
                    "Remove the hook and run again."
                )
            case Refused.NO_TABLE:
                return CompilationError(
                    f"Spark has no table {target}, so there is nothing to publish. Run its node."
                )
            case Refused.UNFINISHED:
                return CompilationError(
                    f"The last run of {target} has failed or was killed, so its rows may not be "
                    "right. Nothing was published. Run its node, which publishes its rows or says "
                    "what is wrong with them."
                )
            case Refused.NOT_PUBLISHED:
                return CompilationError(f"{target} was not published yet. Run its node.")
            case Refused.HELD:
                return CompilationError(
                    f"{target} has held rows, which the mirrored table must not have yet. Nothing "
                    "was changed. Publish them first: `dbt run-operation mirror_publish`."
                )
            case Refused.OTHER_FORMAT:
                assert self.records.last, "it was published"
                found = self.records.last.batch.definition.landing_format
                return CompilationError(
                    f"{target} was published as {found}, and its `landing_format` or `delimited` "
                    f"is another one now ({self.node.options.landing_format}). Nothing was "
                    "changed. Run its node, which rebuilds the mirrored table with all rows."
                )
        return super()._refusal(why, intent)
