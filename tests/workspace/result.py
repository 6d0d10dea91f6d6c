"""The result of a run: a JSON file without names, ids, addresses and secrets.

The file has only the fields of `Result`. Texts of Fabric are cleaned twice: all names that the run
knows are removed, and of the rest only words stay that cannot be a name of somebody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StringConstraints,
)

from tests.workspace.probe import PROBES, Answer, Probe, Saw, Service

# in place of what was removed
GONE = "\u2026"

_MOST_CHARACTERS = 300

# capitalized words of Fabric's messages, its statuses, and ours
_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        A An After All Before Cannot Check Column Columns Data Delete Delta Drop Each Every Fabric
        Failed File Files Folder For From HTTP I If In Initialized Initializing Invalid It JSON Key
        Keys Landing Livy Look Mirroring Missing More NULL Next No None Not NotRun On One OneLake
        Only Parquet Paused Please Put Rebuild Replicating Reseeding Retry Retry-After Row Rows Run
        Running SQL Schema Select Snapshotting Some Spark Started Starting Stopped Stopping Success
        Table Tables That The There They This To Try Type UTC Update Use Value Values Wait What
        When With Without You __rowMarker__ _FilesReadyToDelete _ProcessedFiles _metadata.json dbo
        if-none-match keyColumns If-None-Match
        """,
    )
)

_ENDS = (
    "Active|Allowed|Busy|Conflict|Denied|Error|Exceeded|Exception|Exists|Expired|Failure|Files|"
    "Forbidden|InUse|Limit|LimitExceeded|Match|Met|Mismatch|Missing|Found|Ready|Request|Requests|"
    "Required|Supported|Timeout|Type|Unauthorized|Unavailable|Directory|Empty|Invalid|Reused|Name|"
    "Column|Folder|Corrupted|Payload|Reached"
)

# the types of a Delta table
_TYPES = (
    r"decimal\(\d{1,2},\d{1,2}\)|timestamp_ntz|double|float|integer|int|long|bigint|short|"
    r"smallint|byte|tinyint|binary|date|string|boolean|timestamp"
)

_MARKS = ".,:;!?"

_KEPT = re.compile(rf"[a-z]{{1,18}}(?:['\u2019][a-z]{{1,2}})?|\d{{1,5}}|(?:{_TYPES})")
_CODE = re.compile(rf"(?:[A-Z]{{1,2}}[a-z]*)+?(?:{_ENDS})")
_QUOTED = re.compile(r"(?<!\w)(['\"`\u2018\u201c]).*?['\"`\u2019\u201d](?!\w)")


def _is_kept(word: str) -> bool:
    """Check whether a word cannot be a name of somebody."""
    found = word in _WORDS or _KEPT.fullmatch(word) or _CODE.fullmatch(word)
    return bool(found)


def known_words(text: str) -> str:
    """Return a text with only the words that cannot be a name, an id, an address or a secret."""
    line = _QUOTED.sub(f" {GONE} ", text[: 4 * _MOST_CHARACTERS])
    words: list[str] = []
    for word in line.split():
        # a type may end with a bracket, and a word in brackets too
        if any(map(_is_kept, (word.strip(_MARKS), word.strip(f"{_MARKS}()[]")))):
            words.append(word)
        elif words[-1:] != [GONE] and word.strip(_MARKS):
            words.append(GONE)
    kept = " ".join(words)
    if len(kept) <= _MOST_CHARACTERS:
        return kept
    return f"{kept[: _MOST_CHARACTERS - 2].rpartition(' ')[0]} {GONE}"


class Cleaner:
    """Removes what a run knows: workspace, item, tenant, user, tokens, hosts, this machine.

    Args:
        names: such names; the parts of those with blanks count too
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: set[str] = set()
        self.learn(*names)

    def learn(self, *names: str) -> None:
        """Remove more names from now on."""
        parts = {part for name in names for part in re.split(r"[\s@/\\._-]", name)}
        # a message needs its short words
        self._names |= {part for part in parts if len(part) > 3 and part not in _WORDS}
        self._names |= {name for name in names if len(name) > 1}

    def clean(self, text: str) -> str:
        """Return a text without the names, and without what may be one."""
        for name in sorted(self._names, key=len, reverse=True):
            text = re.sub(re.escape(name), f" {GONE} ", text, flags=re.IGNORECASE)
        return known_words(text)


Text = Annotated[str, AfterValidator(known_words)]
FactName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9 (),]{1,40}$")]
Number = Annotated[int, AfterValidator(lambda number: PROBES[number].number)]


System = Literal["Linux", "Darwin", "Windows", "other"]


class _Closed(BaseModel):
    """Has only the fields of its class."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Observation(_Closed):
    """The answer to a probe."""

    probe: Number
    answer: Answer
    facts: dict[FactName, StrictBool | StrictInt | StrictFloat | Text] = {}
    said: tuple[Text, ...] = ()
    seconds: Annotated[float, Field(ge=0)] = 0
    date: date

    @classmethod
    def of(cls, probe: Probe, seen: Saw, seconds: float, cleaner: Cleaner) -> Observation:
        """Return what is kept of an answer."""
        facts = {
            name: cleaner.clean(fact) if isinstance(fact, str) else fact
            for name, fact in seen.facts.items()
        }
        said = tuple(dict.fromkeys(map(cleaner.clean, seen.said)))
        return cls(
            probe=probe.number,
            answer=seen.answer,
            facts=facts,
            said=said,
            seconds=round(seconds, 1),
            date=date.today(),
        )

    @property
    def summary(self) -> str:
        """What was seen, in one line."""
        return "; ".join(f"{name}: {_shown(fact)}" for name, fact in self.facts.items())


def _shown(fact: bool | int | float | str) -> str:
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    return f"{fact:,}" if isinstance(fact, int) else str(fact)


class Result(_Closed):
    """The result of a run, as it is written.

    Args:
        run: made up for this run; the name of its mirrored database ends with it
        package: the version of the adapter
        kept: whether the mirrored database was left for another run
        minutes: how long it took
        requests: those of the run itself, without those of dbt and deltalake
    """

    version: Literal[1] = 1
    run: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}$")]
    package: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\w+$")]
    python: Annotated[str, StringConstraints(pattern=r"^3\.\d+$")]
    system: System
    against: Literal["Fabric", "stand-ins"]
    kept: bool = False
    minutes: float = Field(ge=0)
    requests: dict[Service, int] = {}
    observations: tuple[Observation, ...] = ()

    def to_json(self) -> str:
        return f"{self.model_dump_json(indent=2)}\n"

    def with_others(self, other: Result) -> Result:
        """Return this result, with the observations of another one for probes that it lacks."""
        mine = {each.probe for each in self.observations if each.answer != "not asked"}
        kept = [each for each in other.observations if each.probe not in mine]
        probes = {each.probe for each in kept}
        ours = [each for each in self.observations if each.probe not in probes]
        found = sorted([*ours, *kept], key=lambda each: each.probe)
        return self.model_copy(update={"observations": tuple(found)})
