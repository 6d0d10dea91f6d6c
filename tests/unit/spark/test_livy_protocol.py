"""Values on their way through Livy."""

from __future__ import annotations

import base64
import json
import math
import zlib
from decimal import Decimal
from typing import Any

import pytest

from dbt.adapters.openmirroring.spark.livy.conversation import Answer, CutOffError
from dbt.adapters.openmirroring.spark.livy.driver import rows_for_json


def answer(rows: Any) -> Answer:
    """Return the answer of a driver, in two pieces."""
    text = base64.b64encode(zlib.compress(json.dumps({"rows": rows}).encode())).decode()
    return Answer.parse([text[:10], text[10:]])


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 2**63 - 1, -0.0, float("-inf"), "é\x00\u2028😀"),
        *(Decimal("1.20"), Decimal("-99999999999999999999999999999999999999"), Decimal("0E-18")),
    ],
    ids=str,
)
def test_a_value_arrives_as_pyspark_has_it(value: Any) -> None:
    [[found]] = answer(rows_for_json([[value]])).rows or ()

    assert (found, repr(found), type(found)) == (value, repr(value), type(value))


def test_nan_arrives_as_nan() -> None:
    [[found]] = answer(rows_for_json([[math.nan]])).rows or ()

    assert math.isnan(found)


@pytest.mark.parametrize("pieces", [[], ["eJw"], ["AAAA"], ["!"]])
def test_an_answer_that_is_damaged_is_an_error(pieces: list[str]) -> None:
    with pytest.raises(CutOffError):
        Answer.parse(pieces)


@pytest.mark.parametrize("rows", [[[["x"]]], [[["1", "2", "3"]]], [[[None]]], [1], 1])
def test_rows_that_are_none_of_ours_are_an_error(rows: Any) -> None:
    with pytest.raises(CutOffError):
        answer(rows)
