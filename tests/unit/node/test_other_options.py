from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.other_options import EVERYWHERE, INCREMENTAL

# of dbt-databricks and dbt-fabricspark: the rows are the same without them
HARMLESS = {
    "zorder": ["id"],
    "liquid_clustered_by": "id",
    "auto_liquid_cluster": True,
    "databricks_tags": {"team": "sales"},
    "query_tags": "sales",
    "databricks_compute": "large",
    "include_full_name_in_path": True,
    "unique_tmp_table_suffix": True,
    "use_safer_relation_operations": True,
    "incremental_apply_config_changes": False,
    "skip_optimize": True,
    "skip_merge_on_empty_source": True,
    "view_update_via_alter": True,
    "submission_method": "serverless_cluster",
    "on_configuration_change": "apply",
    "concurrent_batches": False,
    "our_own_option": "anything",
}


@pytest.mark.parametrize("materialized", ["table", "incremental", "seed", "snapshot"])
@pytest.mark.parametrize("name", EVERYWHERE)
def test_an_option_of_another_adapter_is_refused_by_name(name: str, materialized: str) -> None:
    with pytest.raises(CompilationError) as error:
        NodeConfig.parse({"materialized": materialized, name: "iceberg"})
    assert f"`{name}` is not supported" in str(error.value)
    assert EVERYWHERE[name] in str(error.value)


@pytest.mark.parametrize("value", [True, "true", "delete", "t.id > 1"])
@pytest.mark.parametrize("name", INCREMENTAL)
def test_an_option_of_a_merge_is_refused_in_an_incremental_model(name: str, value: Any) -> None:
    config = {"unique_key": "id", name: value}

    with pytest.raises(CompilationError) as error:
        NodeConfig.parse({"materialized": "incremental", **config})

    assert f"`{name}` is not supported" in str(error.value)
    assert INCREMENTAL[name] in str(error.value)
    NodeConfig.parse({"materialized": "table", **config})


@pytest.mark.parametrize("value", [None, False, "", [], {}, "false", "False", "none", "default"])
@pytest.mark.parametrize("name", [*EVERYWHERE, *INCREMENTAL])
def test_an_option_that_is_off_is_no_option(name: str, value: Any) -> None:
    NodeConfig.parse({"materialized": "incremental", name: value})


@pytest.mark.parametrize("name", HARMLESS)
def test_an_option_that_changes_no_row_is_ignored(name: str) -> None:
    NodeConfig.parse({"materialized": "incremental", "unique_key": "id", name: HARMLESS[name]})


def test_a_view_may_have_the_options_of_the_project() -> None:
    NodeConfig.parse({"materialized": "view", "table_format": "iceberg"})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"incremental_strategy": "replace_where"}, "`incremental_strategy: replace_where`"),
        (
            {"incremental_strategy": "insert_overwrite", "liquid_clustered_by": "day"},
            "`liquid_clustered_by` with insert_overwrite",
        ),
    ],
)
def test_a_strategy_of_another_adapter_is_refused_with_what_to_use(
    config: dict[str, Any], message: str
) -> None:
    with pytest.raises(CompilationError) as error:
        NodeConfig.parse({"materialized": "incremental", **config})
    assert message in str(error.value)
    assert "partition_by" in str(error.value)
