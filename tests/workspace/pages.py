"""The pages that are made from the table of probes: of a result, and of the newest answers.

`python -m tests.workspace.pages` writes docs/contributing/fabric-observed.md; with the file of a
result, it takes over its answers first.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from tests.pages import ROOT
from tests.workspace import landing, livy, onelake, product, service
from tests.workspace.probe import GROUPS, PAGES, PROBES, Probe
from tests.workspace.result import Observation, Result

PAGE = ROOT / "docs" / "contributing" / "fabric-observed.md"

# the newest answers to all probes
OBSERVED = Path(__file__).with_name("observed.json")

# these add their probes to the table
MODULES = (landing, onelake, livy, service, product)

# above it, the page is written by hand
MARK = "<!-- The rest is made by `python -m tests.workspace.pages`. -->"


def page_of(result: Result) -> str:
    """Return the page of a result, in Markdown, as it is pasted into an issue."""
    answers = Counter(each.answer for each in result.observations)
    counted = ", ".join(f"{count} {answer}" for answer, count in answers.items())
    requests = ", ".join(f"{count:,} to {name}" for name, count in sorted(result.requests.items()))
    lines = [
        f"## What {result.against} said",
        "",
        f"dbt-openmirroring {result.package}, Python {result.python}, {result.system}. "
        f"{result.minutes:g} minutes. Requests of the run itself: {requests or 'none'}. "
        f"Answers: {counted}.",
        "",
        "| # | question | answer | what was seen | seconds |",
        "|---|---|---|---|---|",
    ]
    not_asked: dict[str, list[str]] = {}
    for each in result.observations:
        if each.answer == "not asked":
            not_asked.setdefault(_seen(each), []).append(str(each.probe))
            continue
        asks, seconds = PROBES[each.probe].asks, f"{each.seconds:,.0f}"
        cells = (str(each.probe), asks, each.answer, _seen(each), seconds)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    reasons = [f"- {', '.join(numbers)}: {why}" for why, numbers in not_asked.items()]
    return "\n".join([*lines, "", *(["Not asked:", "", *reasons, ""] if reasons else [])])


def _seen(each: Observation) -> str:
    said = "; ".join(f"*{text}*" for text in each.said)
    return ". ".join(filter(None, (each.summary, said)))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def observed_page(result: Result | None) -> str:
    """Return the page of the newest answers to each probe."""
    answers = {each.probe: each for each in result.observations} if result else {}
    head = PAGE.read_text().partition(MARK)[0]
    parts = [f"{head}{MARK}\n\n"]
    for group, title in GROUPS.items():
        found = [probe for _, probe in sorted(PROBES.items()) if probe.group == group]
        parts.append(f"## {title}\n\n")
        columns = ("#", "question", "we assume", "rests on it", "if Fabric answers otherwise")
        parts.append(f"| {' | '.join((*columns, 'Fabric said'))} |\n|{'---|' * 6}\n")
        parts += [_row(probe, answers.get(probe.number)) for probe in found]
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"


def _row(probe: Probe, answer: Observation | None) -> str:
    source = _linked(probe.source)
    assumed = f"{probe.assumes} ({source})"
    place = _place(probe.rests_on)
    said = "not asked yet"
    if answer and answer.answer != "not asked":
        said = f"{answer.date:%Y-%m-%d}: {answer.answer}. {_seen(answer)}".rstrip(". ")
    cells = (str(probe.number), probe.asks, assumed, place, probe.otherwise, said)
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _linked(source: str) -> str:
    """Return a source with links to the pages of Microsoft that it names."""
    for name, url in PAGES.items():
        source = re.sub(rf"\b{name}(?=[,;]| names| for)", f"[{name}]({url})", source)
    return source


def _place(rests_on: str) -> str:
    path, _, name = rests_on.partition("::")
    if not path:
        return "nothing yet"
    folder = "" if path.startswith("macros/") else "dbt/adapters/openmirroring/"
    return f"[`{name}`](../../{folder}{path})"


def observed() -> Result | None:
    """Return the newest answers; None if nobody has asked yet."""
    if not OBSERVED.exists():
        return None
    return Result.model_validate_json(OBSERVED.read_text())


def take_over(result: Result) -> None:
    """Let the answers of a result be the newest ones.

    Raises:
        ValueError: if it is not of Fabric
    """
    if result.against != "Fabric":
        raise ValueError("this result is of stand-ins, which say nothing about Fabric")
    before = observed()
    newest = result.with_others(before) if before else result
    OBSERVED.write_text(newest.to_json())


def main() -> None:
    """Write the page, with the answers of the given results."""
    for path in sys.argv[1:]:
        take_over(Result.model_validate_json(Path(path).read_text()))
    PAGE.write_text(observed_page(observed()))


if __name__ == "__main__":
    main()
