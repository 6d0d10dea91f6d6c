"""A materialization of the project does not publish, and dbt says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.project import Project
from tests.variants import some

ROWS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"

CUSTOM = """
{{% materialization {name}, adapter='openmirroring' %}}
  {{%- call statement('main') -%}}
    create or replace view {{{{ this }}}} as {{{{ sql }}}}
  {{%- endcall -%}}
  {{{{ return({{'relations': [this.incorporate(type='view')]}}) }}}}
{{% endmaterialization %}}
"""

# warnings are errors
STRICT = ("--warn-error-options", '{"error": ["AdapterEventWarning"]}')


@pytest.mark.parametrize(
    "config",
    some([{"unique_key": "id"}, {"publish": "immediately"}, {"landing_format": "csv"}]),
)
def test_a_node_that_looks_mirrored_is_warned_of(project: Project, config: dict[str, Any]) -> None:
    project.write("macros/custom.sql", CUSTOM.format(name="merged"))
    project.model(ROWS, **{"materialized": "merged", **config})

    error = project.fail(*STRICT)

    assert "model.shop.orders is not mirrored" in error
    assert "its materialization `merged` of the package shop does not publish" in error
    project.run()
    for options in ({"mirror": False, **config}, {}):  # these do not look so
        project.model(ROWS, materialized="merged", **options)
        project.run(*STRICT)
    assert not project.landing_zone.exists()


def test_a_node_that_asks_to_be_mirrored_is_refused(project: Project) -> None:
    project.write("macros/custom.sql", CUSTOM.format(name="merged"))
    project.model(ROWS, materialized="merged", mirror=True)

    assert "`mirror: true`. Nothing was changed" in project.fail()
    assert not project.tables()

    project.model(ROWS, materialized="table", mirror=True)
    project.run()
    project.assert_mirrored()
    project.write("macros/custom.sql", CUSTOM.format(name="table"))
    project.model(ROWS)
    assert "its materialization `table` of the package shop" in project.fail(*STRICT)


def test_a_materialization_that_calls_ours_publishes(project: Project) -> None:
    project.write(
        "macros/custom.sql",
        "{% materialization audited, adapter='openmirroring' %}"
        "{{ return(mirror_materialization()) }}{% endmaterialization %}",
    )
    project.model(ROWS, materialized="audited", unique_key="id", mirror=True)

    assert project.run(*STRICT)["publication"] == "initial"
    project.assert_mirrored()
