"""A table in a landing zone and in Spark, as small as the protocol sees it, and its actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

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
    NEXT,
    PUBLISHED,
    Baseline,
    Beside,
    Committed,
    Earlier,
    Facts,
    Files,
    GoAhead,
    Held,
    Intent,
    Itself,
    Kept,
    Marks,
    Part,
    Recover,
    Relation,
    State,
)
from dbt.adapters.openmirroring.protocol.facts import (
    Rows as RowsOf,
)
from dbt.adapters.openmirroring.protocol.rules import next_action

Rows: TypeAlias = frozenset[int]

# more actions than any run has
MOST = 30


@dataclass(frozen=True)
class Table:
    """A table in Spark.

    Args:
        versions: the rows of each version; the last one is the table
        noted: the build that was published last, and the version that has its rows
        oldest: the first version that can still be read
        is_lost: whether its folder is gone, so that Spark can only drop it
        is_elsewhere: whether it was published elsewhere
    """

    versions: tuple[Rows, ...]
    build: str | None = None
    noted: tuple[str, int] | None = None
    is_unmirrored: bool = False
    oldest: int = 0
    is_lost: bool = False
    is_elsewhere: bool = False

    @property
    def rows(self) -> Rows:
        return self.at(-1)

    def at(self, version: int) -> Rows:
        return frozenset() if self.is_lost else self.versions[version]

    def changes_since(self, version: int) -> list[int]:
        """The versions that changed rows since then."""
        later = range(version + 1, len(self.versions))
        return [n for n in later if self.versions[n] != self.versions[n - 1]]

    def changed(self, rows: Rows) -> Table:
        return replace(self, versions=(*self.versions, rows))


@dataclass(frozen=True)
class Batch:
    """A batch of a manifest or a journal.

    Args:
        rows: of the mirrored table after it
        version: of a relation that is changed in place, before the change
        state: the version of the relation that has its rows; None if nobody knows it
        is_before: whether that is the version before a change in place
    """

    id: str
    build: str
    rows: Rows
    version: int | None = None
    state: int | None = 0
    is_before: bool = False


@dataclass(frozen=True)
class World:
    """What outlives a run.

    Args:
        staged: how many of the two files of the manifest are on the scratch pad
        is_lost: whether somebody has deleted staged files
        mirror: the rows of the mirrored table; None if its folder is begun and not complete
    """

    relation: Table | None = None
    beside: tuple[tuple[Beside, Table], ...] = ()
    journal: Batch | None = None
    manifest: Batch | None = None
    staged: int = 0
    is_lost: bool = False
    held: Held | None = None
    is_held_damaged: bool = False
    is_checked: bool = False
    mirror: Rows | None = None
    name: str = field(default="", compare=False)

    def having(self, kind: str, number: str, table: Table) -> World:
        return replace(self, beside=tuple(sorted([*self.beside, (Beside(kind, number), table)])))

    def without(self, beside: Beside) -> World:
        return replace(self, beside=tuple(each for each in self.beside if each[0] != beside))

    @property
    def tables(self) -> list[Table]:
        """Those that may have all rows of a build."""
        found = [table for each, table in self.beside if each.kind in (NEXT, PUBLISHED)]
        return [self.relation, *found] if self.relation else found

    @property
    def needed(self) -> list[Table]:
        """The tables whose rows a publication reads."""
        last = self.journal.build if self.journal else ""
        kept = dict(self.beside).get(Beside(PUBLISHED, last))
        return [table for table in (self.relation, kept) if table]

    def rows_of(self, baseline: Baseline) -> Rows:
        """The rows of a table that a publication compares with."""
        match baseline:
            case Kept(table):
                kept = dict(self.beside)[table]
                if kept.noted and kept.noted[0] == table.id:
                    return kept.at(kept.noted[1])
                return kept.rows
            case Earlier(version):
                assert self.relation
                return self.relation.at(int(version))
            case Itself():
                assert self.relation
                return self.relation.rows
        return frozenset()

    def has_copy_of(self, rows: Rows) -> bool:
        return any(
            rows in table.versions[table.oldest :] for table in self.tables if not table.is_lost
        )


@dataclass
class Code:
    """Code of the user before a build, and what is known of the relation meanwhile.

    Args:
        keeps_versions: whether the format of the relation keeps versions
        table, base: the relation and the place of the published rows, before the code
    """

    keeps_versions: bool
    table: Table
    base: Baseline
    is_touched: bool | None = None

    @property
    def version(self) -> str | None:
        return str(len(self.table.versions) - 1) if self.keeps_versions else None

    def look(self, world: World) -> None:
        """As `Attempt` does: the same number of a version may be that of another table."""
        found = world.relation
        if isinstance(self.base, Kept):
            self.is_touched = False
        elif found is None or isinstance(self.base, Earlier):
            self.is_touched = True
        elif self.keeps_versions:
            is_same = len(found.versions) == len(self.table.versions)
            self.is_touched = not is_same or found.build != self.table.build
        else:
            self.is_touched = replace(found, noted=None) != replace(self.table, noted=None)


@dataclass
class Run:
    """A run of the protocol.

    Args:
        mine: the id of the batch that it has committed
        taking: the rows that the relation has after it has taken some in place
        watch: called with the worlds around each half of an action; it may end the run
    """

    world: World
    intent: Intent
    mine: str = ""
    watch: Callable[[World, World, str], None] = lambda *_: None
    files: Files = Files.UNKNOWN
    part: Part = Part.UNKNOWN
    state: int | None = None
    is_state_kept: bool = False
    rows: RowsOf = RowsOf.UNKNOWN
    has_finished: bool = False
    taking: Rows = frozenset()
    elsewhere: str | None = None
    code: Code | None = None
    manifest: Batch | None = None
    steps: list[str] = field(default_factory=list)

    def carry_out(self) -> Start | Done | Refused:
        self.manifest = None if self.has_record else self.world.manifest
        for _ in range(MOST):
            move = next_action(self.observe(), self.intent)
            if isinstance(move, Compare | Rebuild | Fetch | Done | Refused):
                return move
            for what, change in self._halves(move):
                before, self.world = self.world, change
                self.steps.append(what)
                self.watch(before, self.world, what)
        raise AssertionError(f"It does not come to an end: {self.steps[-4:]}")

    @property
    def has_record(self) -> bool:
        """Whether rows are held, once earlier runs are recovered."""
        return isinstance(self.intent, GoAhead) and self.intent.held is not None

    def observe(self) -> Facts:
        world, journal, manifest = self.world, self.world.journal, self.manifest
        relation = Relation.CHECKED if world.is_checked else Relation.MISSING
        if world.relation:
            relation = Relation.LOST if world.relation.is_lost else Relation.THERE
        table = world.relation or Table(())
        if table.is_lost:
            table = Table(())
        noted = (table.noted[0], str(table.noted[1])) if table.noted else None
        return Facts(
            last=journal.build if journal else None,
            is_state_kept=self.is_state_kept,
            recorded=journal.id if journal else None,
            manifest=Committed(
                manifest.id, manifest.build, manifest.version is not None, manifest.id == self.mine
            )
            if manifest
            else None,
            held=world.held,
            relation=relation,
            beside=tuple(each for each, table in world.beside if not table.is_lost),
            lost=tuple(each for each, table in world.beside if table.is_lost),
            files=self.files,
            part=self.part,
            marked=Marks(table.build, noted, table.is_unmirrored),
            rows=self.rows,
            has_finished=self.has_finished,
            is_superseded=self.has_record and world.manifest is not None,
            elsewhere=self.elsewhere,
            is_held_damaged=world.is_held_damaged,
            version=self.code.version if self.code else None,
            is_touched=self.code.is_touched if self.code else None,
        )

    def _halves(self, action: Action) -> Iterator[tuple[str, World]]:
        """Yield the worlds after each half of an action."""
        world, batch = self.world, self.manifest
        match action:
            case Keep(table):
                assert world.relation
                assert not world.relation.is_lost
                kept = world.having(table.kind, table.id, world.relation)
                yield "keep relation", replace(kept, relation=None)
            case Rename(table):
                found = dict(world.beside)[table]
                assert not found.is_lost
                yield f"rename {table.kind}", replace(world.without(table), relation=found)
            case Drop(table):
                yield f"drop {table.kind}", world.without(table)
            case Step.DROP_RELATION:
                yield "drop relation", replace(world, relation=None, is_checked=False)
            case Restate(build):
                assert world.journal
                self.is_state_kept = True
                copy = dict(world.beside).get(Beside(PUBLISHED, build)) or world.relation
                assert copy
                assert not copy.is_lost
                state = len(copy.versions) - 1
                journal = replace(world.journal, build=build, state=state, is_before=False)
                yield "keep state", replace(world, journal=journal)
            case Look.AT_FILES:
                self.files = Files.LOST if world.is_lost else Files.WHOLE
            case Look.AT_PART:
                self.part, self.state = self._looked()
            case Step.WITHDRAW:
                mirror = world.mirror if world.journal else None
                yield "withdraw", replace(world, manifest=None, staged=0, mirror=mirror)
            case Write(held):
                yield "write held record", replace(world, held=held, is_held_damaged=False)
            case Note(build, published, version):
                assert world.relation
                found = world.relation
                at = int(version or len(found.versions) - 1)
                noted_now = replace(found, noted=(published, at) if published else found.noted)
                if build:
                    noted_now = replace(noted_now, build=build, is_unmirrored=False)
                yield "note", replace(world, relation=noted_now)
            case Step.FORGET_VERSION:
                assert world.relation
                yield "forget", replace(world, relation=replace(world.relation, noted=None))
            case Step.COPY:
                assert world.journal
                build = world.journal.build
                baseline = self.observe().baseline
                rows = world.rows_of(baseline)
                if isinstance(baseline, Itself) and self.code and self.code.version:
                    assert world.relation
                    rows = world.relation.at(int(self.code.version))
                yield "copy", world.having(PUBLISHED, build, Table((rows,), build))
            case Look.AT_CODE:
                assert self.code
                self.code.look(world)
                self.rows = RowsOf.FOREIGN if self.code.is_touched else self.rows
            case Look.AT_OTHER_FOLDERS:
                assert world.relation
                self.elsewhere = "elsewhere" if world.relation.is_elsewhere else ""
            case Step.UNMIRROR:
                assert world.relation
                found = replace(world.relation, build=None, noted=None, is_unmirrored=True)
                yield "unmirror", replace(world, relation=found)
            case Step.TAKE_AHEAD:
                assert world.relation
                self.part = Part.MARKED
                yield "take ahead", replace(world, relation=world.relation.changed(self.taking))
            case Look.AT_ROWS:
                self.rows = self._compared()
            case Step.FORGET_HELD:
                yield "delete held record", replace(world, held=None, is_held_damaged=False)
            case Step.ADOPT:
                self.rows = RowsOf.PUBLISHED
                yield "adopt", self._adopted()
            case Step.SUPERSEDE:
                self.manifest = None
            case _:
                assert batch
                yield from self._halves_of_batch(action, batch)

    def _halves_of_batch(self, action: Action, batch: Batch) -> Iterator[tuple[str, World]]:
        world, relation = self.world, self.world.relation
        match action:
            case Step.TAKE_PART:
                assert relation, "Spark has no such table"
                assert not any(table.is_lost for _, table in world.beside)
                taken = relation.changed(batch.rows)
                yield "take", replace(world, relation=taken)
                yield "mark", replace(world, relation=replace(taken, build=batch.build))
                self.part, self.state = Part.MARKED, len(taken.versions) - 1
            case Step.MARK_TAKEN:
                assert relation
                yield "mark", replace(world, relation=replace(relation, build=batch.build))
                self.part = Part.MARKED
            case Step.PUBLISH if world.is_lost:
                self.files = Files.LOST
            case Step.PUBLISH:
                if world.staged > 1:
                    yield "rename a file", replace(world, staged=1, mirror=None)
                yield "publish", replace(world, staged=0, mirror=batch.rows)
                self.files = Files.PUBLISHED
            case Step.RECORD:
                state = batch.state if batch.version is None else self.state
                is_before = state is None and batch.version is not None
                state = batch.version if is_before else state
                journal = replace(batch, state=state, is_before=is_before)
                yield "record", replace(world, journal=journal)
            case Step.COMPLETE:
                done = replace(world, held=None, is_held_damaged=False)
                yield "delete held record", done
                self.manifest = None
                yield "complete", replace(done, manifest=None, is_lost=False)

    def _compared(self) -> RowsOf:
        """What the state in the journal shows of the relation, as `verify_state` reads it."""
        journal, relation = self.world.journal, self.world.relation
        assert journal
        assert relation
        assert not relation.is_lost
        if journal.state is None:  # then the rows are counted
            is_same = len(relation.rows) == len(journal.rows)
        else:
            is_same = len(relation.changes_since(journal.state)) <= journal.is_before
        return RowsOf.PUBLISHED if is_same else RowsOf.FOREIGN

    def _adopted(self) -> World:
        """The rows that were published are an earlier version, or come from the mirrored table."""
        world, journal, relation = self.world, self.world.journal, self.world.relation
        assert journal
        assert relation
        state = None if journal.is_before else journal.state
        is_there = state is not None and relation.oldest <= state < len(relation.versions)
        if state is not None and is_there:
            noted = (journal.build, state)
            return replace(world, relation=replace(relation, noted=noted))
        assert world.mirror is not None
        return world.having(PUBLISHED, journal.build, Table((world.mirror,), journal.build))

    def _looked(self) -> tuple[Part, int | None]:
        """What the history of the relation shows, as `TakenPart` reads it."""
        world, batch, relation = self.world, self.manifest, self.world.relation
        assert batch
        assert batch.version is not None
        last = world.journal.build if world.journal else None
        if relation is None or relation.build not in (last, batch.build):
            return Part.FOREIGN, None
        changes = relation.changes_since(batch.version)
        if relation.build == batch.build:
            return Part.MARKED, changes[0] if changes else batch.version
        if not changes:
            return Part.OPEN, None
        is_readable = relation.oldest <= batch.version
        if is_readable and relation.versions[changes[0]] == batch.rows:
            return Part.TAKEN, changes[0]
        return Part.FOREIGN, None


def state_of(world: World) -> State:
    return Run(world, Recover(), manifest=world.manifest).observe().state
