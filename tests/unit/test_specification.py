"""Each requirement in the list has tests that exist, or is the service's part.

The list is made by hand: the page is Microsoft's and no part of the repository.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = re.findall(
    r"^\| (?!requirement)(.+) \| (.+) \|$", (TESTS / "specification.md").read_text(), re.M
)


@pytest.mark.parametrize(("sentence", "shown"), ROWS, ids=[sentence for sentence, _ in ROWS])
def test_a_sentence_of_the_specification_is_shown(sentence: str, shown: str) -> None:
    tests = re.findall(r"`([\w/]+\.py)::(test_\w+)`", shown)

    assert tests or shown.startswith("The service's part: ")
    for file, name in tests:
        assert f"\ndef {name}(" in (TESTS / file).read_text(), f"{file} has no {name}"
