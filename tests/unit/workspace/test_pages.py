"""The table of probes, and the page that is made from it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.workspace import pages
from tests.workspace.probe import GROUPS, NEEDS, PAGES, PROBES, Probe
from tests.workspace.result import Observation, Result

NO_PAGE = ("no page ", "README, ", "docs/", "Fabric's documentation, ")


def result(against: str, *observations: Observation) -> Result:
    return Result.model_validate(
        {
            "run": "0123abcd",
            "package": "0.2.0",
            "python": "3.11",
            "system": "Linux",
            "against": against,
            "minutes": 1,
            "observations": observations,
        }
    )


def test_the_page_of_answers_is_made_from_the_table_and_the_newest_result() -> None:
    assert pages.PAGE.read_text() == pages.observed_page(pages.observed())


def test_the_probes_are_numbered_without_a_gap_and_no_question_is_asked_twice() -> None:
    assert sorted(PROBES) == list(range(1, len(PROBES) + 1))
    assert len({probe.asks for probe in PROBES.values()}) == len(PROBES)


@pytest.mark.parametrize("probe", PROBES.values(), ids=lambda probe: probe.title)
def test_a_probe_says_what_it_assumes_why_and_what_to_do_otherwise(probe: Probe) -> None:
    assert probe.asks.endswith("?")
    assert probe.assumes.endswith(".")
    assert probe.otherwise.endswith(".")
    assert probe.source.startswith((*PAGES, *NO_PAGE))
    assert probe.group in GROUPS
    assert probe.needs in {"", *NEEDS}


@pytest.mark.parametrize(
    "probe", [p for p in PROBES.values() if p.rests_on], ids=lambda probe: probe.title
)
def test_what_rests_on_an_answer_is_in_the_package(probe: Probe) -> None:
    path, _, name = probe.rests_on.partition("::")
    package = ROOT if path.startswith("macros/") else ROOT / "dbt" / "adapters" / "openmirroring"

    assert name in (package / path).read_text()


def test_answers_of_fabric_are_taken_over_and_those_of_stand_ins_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "OBSERVED", tmp_path / "observed.json")
    answer = Observation(probe=14, answer="otherwise", facts={"seconds": 1200}, date=date.today())

    with pytest.raises(ValueError, match="stand-ins"):
        pages.take_over(result("stand-ins", answer))
    assert pages.observed() is None
    pages.take_over(result("Fabric", answer))

    page = pages.observed_page(pages.observed())
    assert f"| {date.today()}: otherwise. seconds: 1,200 |" in page
    assert page.count("| not asked yet |") == len(PROBES) - 1
