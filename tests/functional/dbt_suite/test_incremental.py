"""dbt's tests of incremental models, in Spark's SQL.

Where a test wants rows that no mirrored table can have, such as keys that are not unique, the
model is not mirrored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey

from tests.functional.dbt_suite.translation import Translated


class TestIncrementalPredicates(BaseIncrementalPredicates):
    option = "+incremental_predicates"

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {
            "models": {
                self.option: ["DBT_INTERNAL_DEST.id != 2"],
                "+incremental_strategy": "delete+insert",
                "+mirror": False,
            }
        }


class TestPredicates(TestIncrementalPredicates):
    option = "+predicates"


class TestIncrementalUniqueKey(Translated, BaseIncrementalUniqueKey):
    changed_by_hand = ("seed",)
    translation: ClassVar[Mapping[str, str]] = {r"'\d{4}-\d\d-\d\d'": r"date \g<0>"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        without_key = ("empty_unique_key_list", "no_unique_key", "empty_str_unique_key")
        mirrored = {name: {"+mirror": True} for name in without_key}
        return {"models": {"+mirror": False, "test": mirrored}}


class TestMicrobatch(Translated, BaseMicrobatch):
    changed_by_hand = ("input_model",)
    translation: ClassVar[Mapping[str, str]] = {
        "unique_key='id'": "unique_key='id', partition_by='day'",
        r"select \* from": "select *, cast(event_time as date) as day from",
    }
