"""The table of probes: what each asks Fabric, what we assume, and what rests on it.

From this table come the run, its result, and the page "What Fabric said". A probe is a function
that takes the mirrored database of a run and returns what it saw. If it has to wait, it is a
generator that yields what it waits for, so that all probes wait at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tests.workspace.place import Place

# `answered`: there was no assumption; `not clear`: what was seen does not answer the question
Answer = Literal["as assumed", "otherwise", "answered", "not clear", "failed", "not asked"]

# what gets the requests of a run
Service = Literal["OneLake", "Fabric's REST API", "Livy"]

# what a probe saw, by name. A text is a word of Fabric, which the result cleans.
Fact = bool | int | float | str

# Pages of Microsoft, by what we call them. A source is one of them, with the section.
PAGES = {
    "landing zone": "https://learn.microsoft.com/fabric/mirroring/open-mirroring-landing-zone-format",
    "best practices": "https://learn.microsoft.com/fabric/mirroring/open-mirroring-best-practices",
    "troubleshooting": "https://learn.microsoft.com/fabric/mirroring/troubleshooting",
    "monitoring": "https://learn.microsoft.com/fabric/mirroring/monitor",
    "REST API": "https://learn.microsoft.com/rest/api/fabric/mirroreddatabase/items",
    "throttling": "https://learn.microsoft.com/rest/api/fabric/articles/throttling",
    "OneLake parity": "https://learn.microsoft.com/fabric/onelake/onelake-api-parity",
    "storage REST": "https://learn.microsoft.com/rest/api/storageservices/datalakestoragegen2/path/create",
    "Livy": "https://learn.microsoft.com/fabric/data-engineering/api-livy-overview",
    "high concurrency": "https://learn.microsoft.com/fabric/data-engineering/high-concurrency-livy",
}

GROUPS = {
    "landing": "Tables in the landing zone",
    "storage": "OneLake",
    "livy": "Livy",
    "service": "Fabric's REST API",
    "product": "The adapter",
}

# what a probe may need that not every run has, and why it was not asked then
NEEDS = {
    "livy": "needs the option livy",
    "pause": "needs the option for a pause of the capacity",
    "week": "needs a second run after eight days",
    "notebook": "needs a notebook in Fabric that an application runs",
}


@dataclass(frozen=True)
class Until:
    """What a probe waits for. Yielded, it returns whether that happened in time.

    Args:
        seconds: the longest wait
    """

    happened: Callable[[], bool]
    seconds: float


@dataclass(frozen=True)
class Saw:
    """What a probe saw.

    Args:
        said: texts of Fabric
    """

    answer: Answer
    facts: dict[str, Fact] = field(default_factory=dict)
    said: tuple[str, ...] = ()


Steps = Generator[Until, bool, Saw]


def saw(is_as_assumed: bool | None, *said: str, **facts: Fact | None) -> Saw:
    """Return what a probe saw.

    Args:
        is_as_assumed: None if there was no assumption
        facts: by name, with `_` for a blank; those that are None are left out
    """
    answers: dict[bool | None, Answer] = {True: "as assumed", False: "otherwise"}
    return Saw(answers.get(is_as_assumed, "answered"), _named(facts), _texts(said))


def not_clear(*said: str, **facts: Fact | None) -> Saw:
    """Return what a probe saw that does not answer its question."""
    return Saw("not clear", _named(facts), _texts(said))


def _named(facts: dict[str, Fact | None]) -> dict[str, Fact]:
    return {name.replace("_", " "): fact for name, fact in facts.items() if fact is not None}


def _texts(said: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for text in said if text)


@dataclass(frozen=True)
class Probe:
    """A question to Fabric.

    Args:
        asks: the question
        assumes: the answer that we assume
        source: the page that says so, with its section; or why none does
        rests_on: the place in the package that rests on it, `path::name`; empty if none does yet
        otherwise: what to do if Fabric answers otherwise
        steps: asks it
        lane: probes of one lane are asked one after another; those without one, side by side
        needs: a key of NEEDS
        after: the number of the probe that has made what this one goes on with; 0 if none has
        is_last: whether it disturbs the others, and so is asked after them
    """

    number: int
    group: str
    asks: str
    assumes: str
    source: str
    rests_on: str
    otherwise: str
    steps: Callable[[Place], Steps | Saw]
    lane: str = ""
    needs: str = ""
    after: int = 0
    is_last: bool = False

    @property
    def title(self) -> str:
        """The question in three words."""
        return self.steps.__name__.replace("_", " ")


PROBES: dict[int, Probe] = {}


def probe(
    number: int,
    *,
    group: str,
    asks: str,
    assumes: str,
    source: str,
    rests_on: str,
    otherwise: str,
    lane: str = "",
    needs: str = "",
    after: int = 0,
    is_last: bool = False,
) -> Callable[[Callable[[Place], Steps | Saw]], Callable[[Place], Steps | Saw]]:
    """Add a probe to the table. `Probe` documents the arguments."""

    def add(steps: Callable[[Place], Steps | Saw]) -> Callable[[Place], Steps | Saw]:
        assert number not in PROBES, f"two probes have the number {number}"
        told = (asks, assumes, source, rests_on, otherwise)
        PROBES[number] = Probe(number, group, *told, steps, lane, needs, after, is_last)
        return steps

    return add


def with_those_before(numbers: Iterable[int]) -> set[int]:
    """Add the probes that have to be asked before these."""
    found: set[int] = set()
    for number in numbers:
        while number and number not in found:
            found.add(number)
            number = PROBES[number].after
    return found
