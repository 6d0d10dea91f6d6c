"""What of an answer gets into a result."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.workspace.pages import MODULES, page_of
from tests.workspace.probe import PROBES, saw
from tests.workspace.result import GONE, Cleaner, Observation, Result, known_words

assert MODULES, "they add their probes"

RESULT: dict[str, Any] = {
    "run": "0123abcd",
    "package": "0.2.0",
    "python": "3.11",
    "system": "Linux",
    "against": "Fabric",
    "minutes": 41.5,
}


def observation(*said: str, **facts: Any) -> Observation:
    return Observation.of(PROBES[1], saw(True, *said, **facts), 1.25, Cleaner())


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The column cannot be merged (SchemaMergeFailure).", None),
        ("HTTP 409, PathAlreadyExists: the path isn't empty", None),
        ("type decimal(38,18) is not timestamp_ntz", None),
        ("The item 'sales' of \"HR\" is gone", f"The item {GONE} of {GONE} is gone"),
        ("for Bob Smith, see https://x.y/z?sig=a", f"for {GONE} see {GONE}"),
        (
            "request 6c1c2b1e-0000-4444-8888-aaaaaaaaaaaa at 10.0.0.1:443",
            f"request {GONE} at {GONE}",
        ),
        ("of contoso_prod or CONTOSO in West-Europe", f"of {GONE} or {GONE} in {GONE}"),
        ("eyJhbGciOi.eyJ0aWQi.c2ln and 1234567890", f"{GONE} and {GONE}"),
    ],
)
def test_a_text_keeps_the_words_that_name_nobody(text: str, kept: str | None) -> None:
    assert known_words(text) == (kept or text)


def test_a_cleaner_removes_the_names_that_a_run_knows_in_any_case() -> None:
    cleaner = Cleaner(["contoso sales", "ada"])
    cleaner.learn("finance")

    told = cleaner.clean("ada of Contoso Sales may not see finance, sales and contoso")

    assert told == f"{GONE} of {GONE} may not see {GONE} and {GONE}"


@given(st.text())
def test_a_text_that_was_cleaned_stays_as_it_is(text: str) -> None:
    cleaned = known_words(text)

    assert known_words(cleaned) == cleaned
    assert not re.search(r"[@/\\=%&]|\d{6}", cleaned)


def test_an_observation_cleans_its_facts_and_texts() -> None:
    found = observation(
        "Not for Bob.", "Not for Bob.", status="Replicating", owner="Bob Smith", n=1
    )

    assert found.said == (f"Not for {GONE}",)
    assert found.summary == f"status: Replicating; owner: {GONE}; n: 1"


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "contoso"},
        {"run": "of Ada"},
        {"package": "contoso"},
        {"system": "ada-laptop"},
        {"requests": {"contoso.com": 1}},
        {"observations": [{"probe": 999, "answer": "failed", "date": "2026-11-28"}]},
        {"observations": [{"probe": 1, "answer": "Ada", "date": "2026-11-28"}]},
        {"observations": [{"probe": 1, "answer": "failed", "date": "2026-11-28", "who": "Ada"}]},
        {
            "observations": [
                {"probe": 1, "answer": "failed", "date": "2026-11-28", "facts": {"a_b@c": 1}}
            ]
        },
    ],
    ids=str,
)
def test_a_result_takes_nothing_but_its_fields_and_their_values(change: dict[str, Any]) -> None:
    assert Result.model_validate(RESULT)

    with pytest.raises((ValidationError, KeyError)):
        Result.model_validate(RESULT | change)


def test_texts_that_somebody_wrote_into_the_file_are_cleaned_when_it_is_read() -> None:
    content = observation(status="Failed").model_dump(mode="json")
    content["said"] = ["Bob Smith was here"]

    assert Observation.model_validate(content).said == (f"{GONE} was here",)


def test_the_page_of_a_result_has_its_answers_and_why_others_are_missing() -> None:
    missing = Observation(
        probe=2, answer="not asked", said=("needs the option livy",), date=date(2026, 11, 28)
    )
    result = Result.model_validate(
        RESULT | {"requests": {"OneLake": 1234}, "observations": (observation(rows=3), missing)}
    )

    page = page_of(result)

    assert f"| 1 | {PROBES[1].asks} | as assumed | rows: 3 | 1 |" in page
    assert "- 2: *needs the option livy*" in page
    assert "1,234 to OneLake" in page


def test_the_newest_answer_to_each_probe_counts() -> None:
    def result(*observations: Observation) -> Result:
        return Result.model_validate(RESULT | {"observations": observations})

    def answer(probe: int, answer: str, day: int) -> Observation:
        return Observation.model_validate(
            {"probe": probe, "answer": answer, "date": date(2026, 11, day)}
        )

    older = result(answer(1, "failed", 1), answer(2, "answered", 1), answer(3, "failed", 1))
    newer = result(answer(1, "as assumed", 2), answer(2, "not asked", 2))

    found = newer.with_others(older).observations

    assert [(each.probe, each.answer) for each in found] == [
        (1, "as assumed"),
        (2, "answered"),
        (3, "failed"),
    ]
