"""Carrying out what the protocol says: the only code that finishes what a run has left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import StagedFilesLostError
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest
from dbt.adapters.openmirroring.node.progress import PUBLISHING
from dbt.adapters.openmirroring.node.snapshot.reuse import TouchedRows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    ROLES_OF_ROWS,
    give_back,
    leftovers,
    remove_dropped,
    remove_unfinished,
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import (
    move,
    snapshot_state,
    snapshot_version,
    take_in_place,
)
from dbt.adapters.openmirroring.node.snapshot.taken_part import TakenPart
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.protocol.actions import (
    Action,
    Compare,
    Done,
    Drop,
    Fetch,
    Keep,
    Look,
    Note,
    Rebuild,
    Refused,
    Rename,
    Restate,
    Start,
    Step,
    Write,
)
from dbt.adapters.openmirroring.protocol.facts import (
    NEXT_KINDS,
    PUBLISHED,
    Beside,
    Committed,
    Earlier,
    Facts,
    Files,
    Held,
    Intent,
    Itself,
    Kept,
    Marks,
    Missing,
    Part,
    Recover,
    Relation,
    Rows,
    State,
)
from dbt.adapters.openmirroring.protocol.rules import next_action
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    UNMIRRORED_PROPERTY,
    VERSION_PROPERTY,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.spark.table import TableDescription

# the rows that a relation takes in place, and which of its rows they replace
TakenRows: TypeAlias = tuple[OpenMirroringRelation, TouchedRows]


def recover(table: Table, is_rebuilt: bool = False) -> Manifest | None:
    """0. Finish the batch that an earlier run committed, if any, and let the relation catch up.

    The node may no longer exist, and Spark may be another one than that of the earlier run.

    Args:
        is_rebuilt: whether the table is rebuilt now, which replaces a batch that nobody can finish

    Returns:
        the batch that was finished

    Raises:
        MirrorError: if the batch cannot be finished
    """
    warehouse, target, publication = table.warehouse, table.target, table.publication
    assert publication, "only a publication finishes a batch"
    give_back(warehouse, target)
    table.manifest = manifest = publication.pending()
    table.look_for_folders()
    snapshot, held = warehouse.found(target), publication.held
    if held and snapshot and snapshot.build not in (None, held.build):
        # another run has made the snapshot go ahead since dbt listed the relations
        warehouse.list_again(target)
    table.advance(Recover(replaces=is_rebuilt))
    remove_unfinished(warehouse, target)
    return None if publication.is_superseded else manifest


@dataclass
class Table:
    """A table, whose facts are observed and on which actions are carried out.

    Args:
        publication: locks the table folder; None for an intent that changes no record
        manifest: a committed batch
        journal, held: the records, without a publication
        marks: those of the relation; None if they are not known
        properties: what the relation is marked with, together with its build
        taking: the rows that it takes in place before they are published
        read_from: where the rows of the relation are that were published last, if it has others
    """

    warehouse: Warehouse
    target: OpenMirroringRelation
    publication: Publication | None = None
    manifest: Manifest | None = None
    journal: Journal | None = None
    held: Held | None = None
    marks: Marks | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    taking: TakenRows | None = None
    read_from: OpenMirroringRelation | None = None
    _known: Facts = field(default_factory=Facts)
    # the folders that are gone of tables beside the relation, and of itself
    _gone: dict[Beside | None, Path] = field(default_factory=dict)
    _lost: StagedFilesLostError | None = None
    _state: str | None = None

    def __post_init__(self) -> None:
        self.look_for_folders()

    def advance(self, intent: Intent) -> Start | Done:
        """Do what the protocol says, until nothing is left to do.

        Raises:
            DbtRuntimeError: if an action fails, or if the protocol refuses to go on. If a snapshot
                that is changed in place refuses the rows, the batch is withdrawn, provided that
                they were certainly not stored
        """
        if self.manifest:
            self.warehouse.adapter.progress.show_step(PUBLISHING)
        self._forget()
        self._lost = self._state = None
        self._know(files=Files.UNKNOWN, part=Part.UNKNOWN, is_state_kept=False)
        before: Action | None = None
        while True:
            match next_action(self.facts, intent):
                case Compare() | Rebuild() | Fetch() | Done() as end:
                    return end
                case Refused() as why:
                    raise self._refusal(why, intent)
                case move:
                    assert move != before, f"{move} has changed nothing"
                    before = move
                    self._carry_out(move, intent)
                    if not isinstance(move, Look):
                        self._forget()

    def _refusal(self, why: Refused, _: Intent) -> DbtRuntimeError:
        match why:
            case Refused.FILES_LOST:
                assert self._lost, "it was found before"
                return self._lost
            case Refused.MOVED_AWAY:
                return CompilationError(
                    f"An earlier run was killed while it held rows of {self.target}. Nothing was "
                    "changed. Run the node once without `--empty`, `--sample` and `dry_run`, "
                    "which repairs it."
                )
        raise AssertionError(f"{why} is for the rows of a node")

    @property
    def facts(self) -> Facts:
        """What is known without a statement, and what was asked before."""
        records = self.publication
        journal = records.last if records else self.journal
        manifest, place = self.manifest, Relation.MISSING
        found = self.warehouse.found(self.target)
        if found:
            place = Relation.LOST if None in self._gone else Relation.THERE
        elif self.target.place in self.warehouse.adapter.checked:
            place = Relation.CHECKED
        return replace(
            self._known,
            last=journal.batch.build if journal else None,
            recorded=journal.batch.id if journal else None,
            manifest=self._committed(manifest) if manifest else None,
            held=records.held if records else self.held,
            is_superseded=bool(records and records.is_superseded),
            is_held_damaged=bool(records and records.is_held_damaged),
            relation=place,
            beside=tuple(each for each in self._beside if each not in self._gone),
            lost=tuple(each for each in self._beside if each in self._gone),
            marked=self.marks or Marks(),
            is_view=bool(found and found.is_view),
        )

    # The rows that were published last, as Spark has them

    def look(self) -> Facts:
        """Ask for the marks of the relation, which tell where these rows are."""
        self._forget()
        if self.marks is None:
            self.marks = self.warehouse.marks(self.warehouse.found(self.target))
        return self.facts

    def look_for_folders(self) -> None:
        """Find out which tables have lost their folders, with all rows."""
        self._gone = {}
        if folder := self.warehouse.lost_folder(self.warehouse.found(self.target)):
            self._gone[None] = folder
        for each, table in self._beside.items():
            if folder := self.warehouse.lost_folder(table):
                self._gone[each] = folder

    def look_again(self) -> None:
        """Find them after code of the user, which may have changed what dbt has listed."""
        warehouse, before, found = self.warehouse, self.marks, self.warehouse.found(self.target)
        self._forget()
        self._know(rows=Rows.UNKNOWN)
        self.read_from = None
        self.look_for_folders()
        marks: Marks | None = Marks()
        if None not in self._gone:
            marks = warehouse.unless_dropped(self.target, warehouse.fresh_marks)
        self.marks = marks or Marks()
        if marks and before and marks.build != before.build:
            warehouse.list_again(self.target)
        elif marks and (found is None or found.information):  # with the properties of before
            warehouse.cache(replace(found or self.target, information=None))

    @cached_property
    def relation(self) -> OpenMirroringRelation | None:
        """Their relation, which may be an earlier version of the snapshot; None without one."""
        found = self.warehouse.found(self.target)
        match self.facts.baseline:
            case Kept(table):
                found = self._beside[table]
                version = self.warehouse.marks(found).version_of(table.id)
                found = found.incorporate(version=version)
            case Earlier(version) if found:
                found = found.incorporate(version=version)
            case Itself() if self.read_from:
                found = self.read_from
            case Missing():
                found = None
        return found

    @cached_property
    def description(self) -> TableDescription | None:
        """Their table; None if there is none, or if they are an earlier version of one."""
        if self.relation is None or self.relation.is_view or self.is_past:
            return None
        return self.warehouse.describe(self.relation)

    @property
    def build(self) -> str | None:
        """The id of the build that has made them; None if they were not published."""
        match self.facts.baseline:
            case Itself(build):
                return build
        return self.facts.published

    @property
    def is_past(self) -> bool:
        """Whether they are an earlier version of a table: readable, but not describable."""
        return self.relation is not None and self.relation.version is not None

    def _forget(self) -> None:
        for name in ("relation", "description", "_beside"):
            self.__dict__.pop(name, None)

    @property
    def is_interrupted(self) -> bool:
        """Whether a killed process has left a relation that has to catch up."""
        return self.facts.state is State.INTERRUPTED

    @property
    def _there(self) -> OpenMirroringRelation:
        """The relation, as dbt has listed it."""
        return self.warehouse.found(self.target) or self.target

    def _know(self, **facts: Any) -> None:
        self._known = replace(self._known, **facts)

    def _committed(self, manifest: Manifest) -> Committed:
        batch = manifest.batch
        is_mine = bool(self.publication and self.publication.batch_id == batch.id)
        return Committed(batch.id, batch.build, bool(manifest.snapshot_version), is_mine)

    @cached_property
    def _beside(self) -> dict[Beside, OpenMirroringRelation]:
        found = {}
        kinds = (*NEXT_KINDS, PUBLISHED, *ROLES_OF_ROWS)
        for table in leftovers(self.warehouse, self.target, kinds):
            made_for = str(table.identifier)[len(str(self.target.identifier)) + 2 :]
            kind, _, number = made_for.lower().rpartition("_")
            found[Beside(kind, number)] = table
        return found

    def _carry_out(self, action: Action, _: Intent) -> None:
        match action:
            case Keep(kept):
                move(self.warehouse, self._there, table_beside(self.target, kept.kind, kept.id))
            case Rename(following, is_finishing):
                if is_finishing:
                    remove_dropped(self.warehouse, self.target)
                move(self.warehouse, self._beside[following], self.target)
                self.marks = Marks(following.id)
            case Drop(left):
                self.warehouse.drop(self._beside[left])
                self._gone.pop(left, None)
            case Step.DROP_RELATION:
                checked = self.warehouse.adapter.checked.pop(self.target.place, None)
                self.warehouse.drop(checked or self._there)
                self._gone.pop(None, None)
            case Note():
                self._note(action)
            case Step.UNMIRROR:
                # before it has other rows than those that were published
                self.warehouse.mark(self.target, {UNMIRRORED_PROPERTY: "true"})
                self.warehouse.unmark(self.target, [BUILD_PROPERTY, VERSION_PROPERTY])
                self.marks = Marks(is_unmirrored=True)
            case Step.TAKE_AHEAD:
                assert self.taking, "the relation takes rows in place"
                take_in_place(self.warehouse, self.target, *self.taking)
                self.warehouse.replaced(self.target)
                self._know(part=Part.MARKED)
            case _:
                assert self.publication, "only a publication has records"
                self._change_records(action, self.publication)

    def _note(self, note: Note) -> None:
        marks, properties = self.marks or Marks(), dict[str, str]()
        if note.build:
            properties = {BUILD_PROPERTY: note.build, **self.properties}
            marks = replace(marks, build=note.build)
        if note.published:
            version = note.version or snapshot_version(self.warehouse, self.target)
            properties[VERSION_PROPERTY] = f"{note.published} {version}"
            marks = replace(marks, noted=(note.published, version))
        self.warehouse.mark(self.target, properties)
        if note.build and marks.is_unmirrored:
            self.warehouse.unmark(self.target, [UNMIRRORED_PROPERTY])
            marks = replace(marks, is_unmirrored=False)
        self.marks = marks

    def _change_records(
        self, action: Look | Step | Write | Restate, publication: Publication
    ) -> None:
        match action:
            case Write(held):
                publication.hold(held)
                return
            case Step.WITHDRAW:
                publication.withdraw_superseded()
                return
            case Step.FORGET_HELD:
                publication.delete_held_record()
                return
            case Restate(build):
                self._restate(publication, build)
                return
        manifest = self.manifest
        assert manifest, "a batch was committed"
        match action:
            case Look.AT_FILES:
                self._ask_for_files(Files.WHOLE, lambda: publication.verify_staged(manifest))
            case Step.PUBLISH:
                self._ask_for_files(Files.PUBLISHED, lambda: publication.publish(manifest))
            case Look.AT_PART:
                taken, run = TakenPart(self.warehouse, self.target, manifest), publication.batch_id
                part, self._state = taken.look(publication.last_build, run)
                self._know(part=part)
            case Step.TAKE_PART:
                self._take_part(publication, manifest)
            case Step.MARK_TAKEN:
                self._mark_taken(manifest)
            case Step.RECORD:
                version = manifest.snapshot_version
                publication.record(manifest, self._state or (version and f"before:{version}"))
            case Step.COMPLETE:
                publication.complete(manifest)
                self.manifest = None
            case Step.SUPERSEDE:
                assert self._lost, "it cannot be finished"
                told = "This full load replaces a batch that cannot be finished"
                logger.warning(f"{told}: {self._lost.msg}")
                publication.supersede(manifest)
                self.manifest = None

    def _restate(self, publication: Publication, build: str) -> None:
        last, state = publication.last, None
        assert last, "a build was published"
        kept = self._beside.get(Beside(PUBLISHED, build))
        table = kept or self._there
        if not (kept and self.warehouse.marks(kept).version_of(build)):
            state = snapshot_state(self.warehouse, table, self.warehouse.describe(table))
        publication.keep(last, build, state)
        self._know(is_state_kept=True)

    def _ask_for_files(self, found: Files, ask: Callable[[], None]) -> None:
        try:
            ask()
        except StagedFilesLostError as error:
            found, self._lost = Files.LOST, error
        self._know(files=found)

    def _take_part(self, publication: Publication, manifest: Manifest) -> None:
        taken = TakenPart(self.warehouse, self.target, manifest)
        try:
            take_in_place(self.warehouse, self.target, taken.table, taken.touched)
            self._mark_taken(manifest)
        except DbtRuntimeError:
            if taken.is_open():
                publication.withdraw(manifest)
            raise
        self.warehouse.replaced(self.target)
        self._state = f"version:{snapshot_version(self.warehouse, self.target)}"

    def _mark_taken(self, manifest: Manifest) -> None:
        build = manifest.batch.build
        self.warehouse.mark(self.target, {BUILD_PROPERTY: build})
        self.warehouse.cache(self.target.carrying(build))
        self._know(part=Part.MARKED)
