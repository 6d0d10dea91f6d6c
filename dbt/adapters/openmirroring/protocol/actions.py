"""The actions that change something, and how a run of the protocol ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from dbt.adapters.openmirroring.protocol.facts import Beside


class Look(Enum):
    """Ask for facts that cost a statement or a request."""

    AT_FILES = auto()  # which staged files of the manifest are there
    AT_PART = auto()  # what the relation has of the changes; statements of dead runs have ended
    AT_NEXT = auto()  # which next snapshots were built with `mirror: false`


class Step(Enum):
    """An action on the only table, manifest or journal that there is. Each can be repeated."""

    TAKE_PART = auto()  # 5. the relation takes the changes of the manifest, and is marked
    MARK_TAKEN = auto()  # 5. the relation is marked with the build whose changes it has taken
    PUBLISH = auto()  # 6. the staged files get their numbers
    RECORD = auto()  # 7. the journal is written
    DROP_RELATION = auto()  # 8. what is in the place of the relation goes
    KEEP_STATE = auto()  # the journal gets the state of the published rows that stand beside
    COMPLETE = auto()  # 8. the manifest goes, and the record of held rows
    SUPERSEDE = auto()  # the next commit replaces the manifest


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
class Drop:
    """8. A table beside the relation goes."""

    table: Beside


class Refused(Enum):
    """Why nothing can be done."""

    FILES_LOST = auto()
    MOVED_AWAY = auto()


@dataclass(frozen=True)
class Done:
    """Nothing is left to do."""


Action: TypeAlias = Look | Step | Rename | Keep | Drop
Move: TypeAlias = Action | Done | Refused
