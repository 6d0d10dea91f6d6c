"""The actions that change something, and how a run of the protocol ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from dbt.adapters.openmirroring.protocol.facts import Baseline, Beside, Held


class Look(Enum):
    """Ask for facts that cost a statement or a request."""

    AT_FILES = auto()  # which staged files of the manifest are there
    AT_PART = auto()  # what the relation has of the changes; statements of dead runs have ended
    AT_ROWS = auto()  # whether others have changed the rows that were published last
    AT_CODE = auto()  # whether code of the user may have changed the relation
    AT_OTHER_FOLDERS = auto()  # whether the table was published elsewhere, and has come back


class Step(Enum):
    """An action on the only table, manifest or journal that there is. Each can be repeated."""

    TAKE_PART = auto()  # 5. the relation takes the changes of the manifest, and is marked
    MARK_TAKEN = auto()  # 5. the relation is marked with the build whose changes it has taken
    PUBLISH = auto()  # 6. the staged files get their numbers
    RECORD = auto()  # 7. the journal is written
    DROP_RELATION = auto()  # 8. what is in the place of the relation goes
    COMPLETE = auto()  # 8. the manifest goes, and the record of held rows
    SUPERSEDE = auto()  # the next commit replaces the manifest
    WITHDRAW = auto()  # the manifest that is replaced goes, with all that was published of it
    TAKE_AHEAD = auto()  # the relation takes rows in place that are not published yet
    UNMIRROR = auto()  # the relation is marked as one that is not mirrored
    FORGET_HELD = auto()  # the record of held rows goes
    COPY = auto()  # the rows that were published last are copied beside
    FORGET_VERSION = auto()  # the relation has its rows of before, whose version was noted
    ADOPT = auto()  # changes of others make the relation ahead, beside the published rows


@dataclass(frozen=True)
class Rename:
    """8. A table beside becomes the relation, whose place is free.

    Args:
        is_finishing: whether a killed run was about to do it, after it had dropped the relation
    """

    table: Beside
    is_finishing: bool = False


@dataclass(frozen=True)
class Keep:
    """The relation becomes a table beside, as the rows that were published last."""

    table: Beside


@dataclass(frozen=True)
class Write:
    """The record of held rows is written."""

    held: Held


@dataclass(frozen=True)
class Restate:
    """The journal gets a build that has the rows which were published last, and its state."""

    build: str


@dataclass(frozen=True)
class Note:
    """The relation is marked with a build, whose rows it has or takes in place.

    Args:
        build: None keeps the mark that it has
        published: the id of the build whose rows its version of before has, if that was published
        version: that version; None if it is the present one
    """

    build: str | None
    published: str | None
    version: str | None = None


@dataclass(frozen=True)
class Drop:
    """8. A table beside the relation goes."""

    table: Beside


class Refused(Enum):
    """Why nothing can be done."""

    FILES_LOST = auto()  # staged files of the manifest
    MOVED_AWAY = auto()  # the relation, by a run that was killed
    COMMITTED = auto()  # there is a batch to finish, which a dry run cannot
    STALE = auto()  # the SQL was compiled before a batch was finished
    OUT_OF_STEP = auto()  # relation and journal have different builds
    FOREIGN = auto()  # others have changed the rows that were published last
    NO_TABLE = auto()  # Spark has no table
    DROPPED = auto()  # a post-hook has dropped the relation
    CODE_DROPPED = auto()  # code before a build has dropped the relation
    REPLACED_BY_VIEW = auto()  # a post-hook has replaced the relation
    UNFINISHED = auto()  # the run that has built the relation has failed, or was killed
    FOLDER_LOST = auto()  # that of the relation, or of the rows that were published last
    RECORD_DAMAGED = auto()  # the record of held rows cannot be read
    OTHER_BUILD = auto()  # another build than the tested one is held
    NOT_PUBLISHED = auto()  # the node has published nothing
    HELD = auto()  # the relation is ahead
    OTHER_FORMAT = auto()  # the table was published in another format


@dataclass(frozen=True)
class Compare:
    """The rows are compared with those that were published last."""

    baseline: Baseline


@dataclass(frozen=True)
class Rebuild:
    """All rows are published in a full load, whose reason the user is told."""

    reason: str


@dataclass(frozen=True)
class Fetch:
    """The mirrored rows become a next snapshot, which becomes the relation."""


@dataclass(frozen=True)
class Done:
    """Nothing is left to do."""


Action: TypeAlias = Look | Step | Rename | Keep | Drop | Write | Note | Restate
Start: TypeAlias = Compare | Rebuild | Fetch
Move: TypeAlias = Action | Start | Done | Refused
