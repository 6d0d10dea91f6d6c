"""What packages for dbt-spark write is taken as dbt-spark takes it, and tools find the adapter."""

from __future__ import annotations

from argparse import Namespace

from dbt.adapters.factory import get_adapter, register_adapter, reset_adapters
from dbt.config.runtime import RuntimeConfig, load_profile, load_project
from dbt.context.providers import generate_runtime_macro_context
from dbt.flags import get_flags, set_from_args
from dbt.mp_context import get_mp_context
from dbt.parser.manifest import ManifestLoader

from tests.functional.project import Project

# a source that belongs to a database, but not in Spark
SOURCES = """
sources:
  - name: shop
    schema: "{{ target.schema }}"
    database: "{% if target.type != 'spark' %}{{ var('shop', target.database) }}{% endif %}"
    tables: [{name: numbers}]
  - name: other
    schema: "{{ target.schema }}"
    database: "{{ var('other', target.database) }}"
    tables: [{name: numbers}]
"""


def test_a_package_finds_its_sources_and_takes_its_branch_for_spark(project: Project) -> None:
    project.write("models/sources.yml", SOURCES)
    project.write("seeds/numbers.csv", "id\n1\n2\n")
    project.model(
        "select id, 'a' as name"
        "{% if target.type in ('bigquery', 'snowflake') %} not for Spark {% endif %}"
        " from {{ source('shop', 'numbers') }} join {{ source('other', 'numbers') }} using (id)",
        partition_by="BRANCH",
        file_format="",
        options="",
        clustered_by="",
        buckets="",
        compression="",
        publish="",
        max_deleted="",
    )
    orders = project.path / "models" / "orders.sql"
    branch = "{'field': 'id', 'data_type': 'int64'} if target.type not in ['spark'] else ['id']"
    orders.write_text(orders.read_text().replace("'BRANCH'", branch))

    project.run(command="seed")
    project.run()

    project.assert_mirrored()
    project.assert_mirrored("numbers")


def test_a_tool_that_has_loaded_nothing_but_macros_reads_columns(project: Project) -> None:
    project.model("select 1 as id, 'a' as name")
    project.run()

    # as dagster-dbt does, which runs dbt in another process
    folder = str(project.path)
    set_from_args(Namespace(profiles_dir=folder), None)
    profile = load_profile(folder, {})
    config = RuntimeConfig.from_parts(
        load_project(folder, False, profile, {}), profile, get_flags()
    )
    reset_adapters()
    register_adapter(config, get_mp_context())
    adapter = get_adapter(config)
    prefix = adapter.connections.set_query_header
    adapter.set_macro_resolver(ManifestLoader.load_macros(config, prefix, base_macros_only=True))
    adapter.set_macro_context_generator(generate_runtime_macro_context)
    relation = adapter.Relation.create(schema=project.schema, identifier="orders")
    with adapter.connection_named("tool"):
        columns = adapter.get_columns_in_relation(relation)

    assert [(each.name, each.data_type) for each in columns] == [("id", "int"), ("name", "string")]
