"""What is known of a table, and what is wanted of it.

The states of a table, and what holds in each:

    settled      The relation has the build of the journal; or it is ahead, and the rows of that
                 build stand beside it or are an earlier version; or it is neither, and every
                 publication but a rebuild is refused.
    interrupted  A run was killed before its commit, or within its swap. A next snapshot stands
                 beside the relation, or the relation was moved away.
    committed    A manifest has files that are staged or published. The journal has the batch
                 before it. A relation that is changed in place may have taken the changes, or not.
    recorded     The journal has the batch of the manifest. The relation catches up.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

# Kinds of tables beside a relation that decide what happens next.
NEXT = "next"  # the next snapshot
UNMIRRORED = "unmirrored"  # that of a node with `mirror: false`
NEXT_KINDS = (NEXT, UNMIRRORED)
PART = "part"  # the rows that a snapshot takes in place, needed until it has stored them
# the rows that were published last, while the snapshot is ahead; the id is that of their build
PUBLISHED = "published"


class State(Enum):
    """The state of a table, from the docstring of this module."""

    SETTLED = auto()
    INTERRUPTED = auto()
    COMMITTED = auto()
    RECORDED = auto()


class Relation(Enum):
    """What is in the place of the relation.

    CHECKED is a table of `--empty` or `--sample`, which stands for none. LOST is a table whose
    folder is gone: nothing reads it, and only a full load replaces it.
    """

    MISSING = auto()
    CHECKED = auto()
    LOST = auto()
    THERE = auto()


class Files(Enum):
    """The files of a manifest."""

    UNKNOWN = auto()
    WHOLE = auto()
    LOST = auto()
    PUBLISHED = auto()


class Part(Enum):
    """What a relation has of the changes that it takes in place.

    OPEN is a relation as the batch was planned for; TAKEN one that has taken the changes, and is
    not marked with their build; MARKED one that is. FOREIGN is any other: a hand has changed,
    dropped or replaced it before it has taken them.
    """

    UNKNOWN = auto()
    OPEN = auto()
    TAKEN = auto()
    MARKED = auto()
    FOREIGN = auto()


class Rows(Enum):
    """The rows of a relation with the build that was published last.

    FOREIGN are rows that others have changed since.
    """

    UNKNOWN = auto()
    PUBLISHED = auto()
    FOREIGN = auto()


class Beside(NamedTuple):
    """A table of a run beside a relation, by its kind and the id in its name."""

    kind: str
    id: str


@dataclass(frozen=True)
class Marks:
    """What the properties of a table tell of its rows.

    Args:
        build: the id of the build that made it: the rows are published if the journal has it too
        noted: a published build, and the version of this table that has its rows: the table was
            changed in place since
        is_unmirrored: whether it was built with `mirror: false`, so that it was not published
        restored: a published build, and the state in which a restore of its rows has left this
            table
    """

    build: str | None = None
    noted: tuple[str, str] | None = None
    is_unmirrored: bool = False
    restored: tuple[str, str] | None = None

    def version_of(self, build: str | None) -> str | None:
        """Return the version of the table that has the rows of a build; None if none is noted."""
        return self.noted[1] if self.noted and self.noted[0] == build else None

    def restored_state(self, build: str) -> str | None:
        """Return the state in which a restore of a build has left the table; None without one."""
        return self.restored[1] if self.restored and self.restored[0] == build else None


@dataclass(frozen=True)
class Held:
    """The record of a relation that is ahead of the mirror.

    Args:
        rebuild: why its rows will be published as a rebuild; None if the changes decide
        is_finished: whether the run of that build has ended, so that its rows may be published
        before: the id of the build that was ahead until that one is the relation, if any
        why: what the user is told
    """

    build: str
    rebuild: str | None = None
    is_finished: bool = True
    before: str | None = None
    why: str = ""


@dataclass(frozen=True)
class Committed:
    """The batch of a manifest.

    Args:
        build: the id of the build whose rows it publishes
        in_place: whether the relation takes its changes in place
        is_mine: whether this run has committed it, so that nobody has interrupted it yet
    """

    id: str
    build: str
    in_place: bool = False
    is_mine: bool = False


@dataclass(frozen=True)
class Itself:
    """The relation, whose build may be another one than that which was published last."""

    build: str | None


@dataclass(frozen=True)
class Earlier:
    """An earlier version of the relation, which is ahead."""

    version: str


@dataclass(frozen=True)
class Kept:
    """A table beside the relation, which is ahead."""

    table: Beside


@dataclass(frozen=True)
class Unpublished:
    """No table. The relation is ahead."""


@dataclass(frozen=True)
class Missing:
    """No table, and there is no relation that can be read."""


Baseline: TypeAlias = Itself | Earlier | Kept | Unpublished | Missing
"""Where Spark has the rows that were published last."""


@dataclass(frozen=True)
class Facts:
    """What is known of a table. Facts that cost a statement or a request may be unknown.

    Args:
        last: the id of the build that was published last; None before the first publication
        is_state_kept: whether the journal has the state of its rows beside the relation, which
            may be a copy
        recorded: the id of the batch in the journal
        is_own: whether the journal is of the node of this run
        is_superseded: whether there is a batch that the next commit replaces
        has_finished: whether this run has finished the batch of another one
        held: the record of held rows, if it can be read
        is_held_damaged: whether there is a record of held rows that cannot be read
        beside: tables of runs beside the relation
        lost: those beside whose folders are gone, so that they are as good as not there
        marked: the marks of the relation; a publication knows them, unless it is lost or a view
        is_view: whether the relation is a view
        elsewhere: how the table was published elsewhere, before it came back to this folder;
            empty if it was not, None if unknown
        version: the version of the relation that has its rows of before, when code of the user
            runs; None if its format keeps none
        is_touched: whether this code may have changed the relation; None if unknown
    """

    last: str | None = None
    is_state_kept: bool = False
    recorded: str | None = None
    manifest: Committed | None = None
    is_own: bool = True
    is_superseded: bool = False
    has_finished: bool = False
    held: Held | None = None
    is_held_damaged: bool = False
    relation: Relation = Relation.MISSING
    beside: tuple[Beside, ...] = ()
    lost: tuple[Beside, ...] = ()
    files: Files = Files.UNKNOWN
    part: Part = Part.UNKNOWN
    marked: Marks = Marks()
    is_view: bool = False
    elsewhere: str | None = None
    rows: Rows = Rows.UNKNOWN
    version: str | None = None
    is_touched: bool | None = None

    @property
    def state(self) -> State:
        if self.manifest:
            is_recorded = self.manifest.id == self.recorded
            return State.RECORDED if is_recorded else State.COMMITTED
        has_next = any(each.kind in NEXT_KINDS for each in self.beside)
        return State.INTERRUPTED if has_next or self.is_moved_away else State.SETTLED

    def following(self, build: str | None) -> Beside | None:
        """Return the next snapshot of a build, if it stands beside."""
        found = (each for each in self.beside if each.kind in NEXT_KINDS and each.id == build)
        return next(found, None)

    @property
    def is_missing(self) -> bool:
        """Whether the place of the relation is free for the build that belongs there."""
        return self.relation in (Relation.MISSING, Relation.CHECKED)

    @property
    def is_moved_away(self) -> bool:
        """Whether a run was killed after it had moved the relation away, to replace it."""
        return self.is_missing and any(each.kind == PUBLISHED for each in self.beside)

    @property
    def ahead(self) -> Held | None:
        """The record of the build that is the relation, if there is one."""
        return self.held if self.held and self.held.build == self.marked.build else None

    @property
    def baseline(self) -> Baseline:
        last, marked, held = self.last, self.marked, self.held
        if last and Beside(PUBLISHED, last) in self.beside:
            return Kept(Beside(PUBLISHED, last))
        if self.relation is not Relation.THERE:
            return Missing()
        if version := marked.version_of(last):
            return Earlier(version)
        if held and marked.build not in (None, last) and marked.build in (held.build, held.before):
            return Unpublished()
        return Itself(marked.build)

    @property
    def published(self) -> str | None:
        """The id of the build that was published last, if Spark has its rows."""
        match self.baseline:
            case Kept() | Earlier() | Itself(self.last):
                return self.last
        return None

    @property
    def is_ahead(self) -> bool:
        """Whether the relation is ahead of the rows that were published last, or may be."""
        return isinstance(self.baseline, Earlier | Kept | Unpublished)


@dataclass(frozen=True)
class Recover:
    """Finish what earlier runs have left, or what this run has committed.

    Args:
        replaces: whether a full load follows, which replaces a batch that cannot be finished
    """

    replaces: bool = False


@dataclass(frozen=True)
class BuildOnly:
    """Build a table that is not mirrored. No record in the landing zone is changed."""


@dataclass(frozen=True)
class GoAhead:
    """Let the relation have the rows of a build, whether or not they are published.

    They are those of a next snapshot, or are taken in place, or the relation has them already.

    Args:
        build: its id
        held: the record of its rows, once the relation has them; None if there is to be none
        before: the id of the build that is ahead until then, if any
        keeps: the id of the build that was published last, if its rows stay beside
        in_place: whether the relation takes the rows in place, and has no next snapshot
        is_doubtful: whether the relation has rows of a run that has failed, until it has those
    """

    build: str
    held: Held | None = None
    before: str | None = None
    keeps: str | None = None
    in_place: bool = False
    is_doubtful: bool = False


@dataclass(frozen=True)
class Settle:
    """Keep a relation that has the rows which were published last, whatever build they are of."""


@dataclass(frozen=True)
class Explain:
    """Record why a relation stays ahead."""

    why: str


@dataclass(frozen=True)
class RunStatement:
    """Let code of the user run a statement that may change the relation, before a build.

    Args:
        replaces: whether the statement may end the history of the table
    """

    replaces: bool


@dataclass(frozen=True)
class EndCode:
    """Go on after code of the user, from the rows that were published last.

    Args:
        before: where these were
        build: the id of the build that was the relation
        extends: whether the SQL of the node was compiled to read the rows of the relation
    """

    before: Baseline
    build: str | None
    extends: bool = False


@dataclass(frozen=True)
class LookOnly:
    """Check SQL, or foretell a run. Nothing is changed."""


@dataclass(frozen=True)
class Publish:
    """Build a node, and publish the difference, or hold its rows.

    Args:
        full_refresh: why the table is rebuilt whatever has changed; None if the changes decide
        extends: whether the SQL of the node was compiled to read the rows of the relation
        adopts: whether the changes of others are published
        is_held: whether the rows are held
        has_hooks: whether hooks follow, which may change the rows
    """

    full_refresh: str | None = None
    extends: bool = False
    adopts: bool = False
    is_held: bool = False
    has_hooks: bool = False


@dataclass(frozen=True)
class Preview(Publish):
    """Foretell what would be published. Nothing is changed."""


@dataclass(frozen=True)
class PublishHeld:
    """Publish rows that are held.

    Args:
        tested: the id of the build that has passed its tests; None publishes any
    """

    tested: str | None = None


@dataclass(frozen=True)
class PublishPresent:
    """Publish the rows that Spark has as a rebuild, whatever they are."""


@dataclass(frozen=True)
class Repair:
    """Publish the difference between the mirrored table and the relation.

    Args:
        has_format: whether the table was published in the format of its configuration
    """

    has_format: bool = True


@dataclass(frozen=True)
class Restore:
    """Bring back the rows that were published last.

    Args:
        replaces: whether they may take the place of other rows
        is_dry: whether no record may be changed
    """

    replaces: bool = False
    is_dry: bool = False


Intent: TypeAlias = (
    Recover
    | GoAhead
    | BuildOnly
    | LookOnly
    | Settle
    | Explain
    | RunStatement
    | EndCode
    | Publish
    | Preview
    | PublishHeld
    | PublishPresent
    | Repair
    | Restore
)
