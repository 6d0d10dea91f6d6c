"""Hooks and other code of the user: what the model is after the last of it, the mirror has."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.functional.nodes import write_node
from tests.functional.project import Project
from tests.functional.test_python_models import python_model
from tests.variants import some

THREE = (
    "select id, cast(name as string) as name "
    "from values (1, 'a'), (2, 'b'), (3, 'c') as t(id, name)"
)
UNKNOWN = "insert into {{ this }} values (-1, 'unknown')"

# by its format, a table can be changed in these ways
ANY = {
    "inserts": UNKNOWN,
    "overwrites as many rows": (
        "insert overwrite {{ this }} select id, concat(name, '!') from values"
        " (1, 'a'), (2, 'b'), (3, 'c') as t(id, name)"
    ),
    "truncates": "truncate table {{ this }}",
    "adds a column": "alter table {{ this }} add columns (extra string)",
    "changes no row": "alter table {{ this }} set tblproperties ('tried' = 'yes')",
}
VERSIONED = {
    "deletes": "delete from {{ this }} where id = 2",
    "updates": "update {{ this }} set name = 'changed' where id > 1",
    "merges": (
        "merge into {{ this }} as t using (select 3 as id union all select 4) as s on t.id = s.id"
        " when matched then update set name = 'm'"
        " when not matched then insert (id, name) values (s.id, 'n')"
    ),
}


def changes(project: Project) -> dict[str, str]:
    """Statements that tables of the project's format take, by names of models that have them."""
    statements = ANY | (VERSIONED if project.file_format != "parquet" else {})
    return {what.replace(" ", "_"): sql for what, sql in statements.items()}


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("keyed", some([True, False]), ids=["keyed", "keyless"])
def test_changes_of_a_post_hook_are_published_with_its_node(project: Project, keyed: bool) -> None:
    config: dict[str, Any] = {"unique_key": "id"} if keyed else {}

    def publications(sql: str, is_hooked: bool = True) -> set[str]:
        for name, hook in changes(project).items():
            project.model(sql, name, post_hook=hook if is_hooked else [], **config)
        project.run()
        for name in changes(project):
            project.assert_mirrored(name)
        return {response["publication"] for response in project.responses().values()}

    assert publications(THREE) == {"initial"}
    assert publications(THREE) == {"unchanged"}
    changed = publications(THREE.replace("'a'", "'A'"))
    if keyed:
        assert changed == {"changes", "unchanged"}
    publications(THREE, is_hooked=False)


def test_code_before_a_build_may_change_the_rows_that_were_published(project: Project) -> None:
    new_rows = "select {{ var('n') }} as id, 'v{{ var('n') }}' as name"
    config = {"materialized": "incremental", "incremental_strategy": "append"}
    config["on_schema_change"] = "append_new_columns"
    # dbt does not render it in a call of config
    header = f"{{% call set_sql_header(config) %}}{UNKNOWN}{{% endcall %}}"
    names = [*changes(project), "headed"]
    for name in names:
        project.model(new_rows, name, **config)
    project.run("--vars", "n: 1")
    for name, change in changes(project).items():
        project.model(new_rows, name, pre_hook=change, **config)
    project.model(header + new_rows, "headed", **config)

    project.run("--vars", "n: 2")

    for name in names:
        project.assert_mirrored(name)
        project.model(new_rows, name, **config)
    project.run("--vars", "n: 3")
    for name in names:
        project.assert_mirrored(name)
    assert set(project.tables()) == set(names)


@pytest.mark.needs(session="without versions, only files on this machine tell of a change")
def test_a_hook_that_hides_what_it_changes_is_noticed_before_another_one_changes_more(
    project: Project,
) -> None:
    new_rows = "select {{ var('n') }} as id, 'v{{ var('n') }}' as name"
    config = {"materialized": "incremental", "incremental_strategy": "append"}
    project.model(new_rows, **config)
    project.run("--vars", "n: 1")
    hidden = (
        'declare or replace variable hidden string default concat("insert overwrite '
        '{{ this.schema }}.or", "ders select 1 as id, \'other\' as name")',
        "execute immediate hidden",
    )
    project.model(new_rows, pre_hook=[*hidden, UNKNOWN], **config)

    project.run("--vars", "n: 2")

    assert len(project.mirror()) == 3
    project.assert_mirrored()


def test_hooks_run_whatever_they_say_of_transactions(project: Project) -> None:
    create = "create table {{ this.schema }}.%s as select 1 as n"
    for transaction, name in ((True, "inside"), (False, "outside")):
        before, after, of_view = (
            {"sql": sql, "transaction": transaction}
            for sql in (create % f"seen_{name}", UNKNOWN, create % f"of_view_{name}")
        )
        project.model(THREE, name, unique_key="id", pre_hook=before, post_hook=after)
        project.model("select 1", f"view_{name}", materialized="view", post_hook=of_view)

    project.run()

    for name in ("inside", "outside"):
        assert {f"seen_{name}", f"of_view_{name}"} <= set(project.tables())
        assert len(project.mirror(name)) == 4
        project.assert_mirrored(name)


def test_hooks_that_read_their_relation_see_its_rows_of_the_moment(project: Project) -> None:
    added = "insert into {{ this }} select max(id) + 100, 'hook' from {{ this }}"
    project.model(
        "select id, 'x' as name from range({{ var('n') }}) "
        "{% if is_incremental() %} where id > (select max(id) from {{ this }} where id < 100)"
        "{% endif %}",
        unique_key="id",
        materialized="incremental",
        pre_hook="{% if is_incremental() %}" + added + "{% endif %}",
        post_hook=added,
    )
    project.run("--vars", "n: 2")

    assert project.run("--vars", "n: 3")["rows_inserted"] == 3

    project.assert_mirrored()
    ids = {int(dict(row)["id"].split()[1]) for row in project.relation()}
    assert ids == {0, 1, 2, 101, 201, 301}


@pytest.mark.parametrize(
    ("kind", "row"),
    [("seed", "-1, 'unknown'"), ("dbt snapshot", "-1, 'unknown', 'h', now(), now(), null")],
)
def test_rows_that_a_hook_adds_to_a_seed_or_a_dbt_snapshot_are_mirrored(
    project: Project, kind: str, row: str
) -> None:
    write_node(project, kind, 0, post_hook=f"insert into {{{{ this }}}} select {row}")

    project.run(command="build")

    project.assert_mirrored()
    assert len(project.mirror()) == 3


PYTHON = {
    "a statement": "session.sql(f\"insert into {dbt.this} values (6, 'q')\")",
    "a frame": "session.sql(\"select 6 as id, 'q' as name\").write.insertInto(str(dbt.this))",
    "a writer": "session.sql(\"select 6 as id, 'q' as name\").writeTo(str(dbt.this)).append()",
    # as one that a library has made
    "an unseen statement": "session.sql(f\"{'INSERT'} into {dbt.this} values (6, 'q')\")",
}


@pytest.mark.needs(pyspark="Thrift knows SQL only")
@pytest.mark.parametrize("way", some(list(PYTHON)))
def test_changes_of_a_python_model_to_its_relation_are_mirrored(
    project: Project, way: str
) -> None:
    if way == "a writer" and project.file_format == "parquet":
        pytest.skip("Spark has this for Delta and Iceberg only")
    body = """
    if dbt.is_incremental:
        STATEMENT
    return session.sql("select 5 as id, 'p' as name")
    """
    config = {"materialized": "incremental", "incremental_strategy": "append"}
    python_model(project, body.replace("STATEMENT", "pass"), **config)
    project.run()
    python_model(project, body.replace("STATEMENT", PYTHON[way]), **config)

    is_rebuilt = way == "an unseen statement" and project.file_format == "parquet"
    for rows in (3, 5):
        assert project.run()["rows_inserted"] == (rows if is_rebuilt else 2)
        project.assert_mirrored()
        assert sum(project.relation().values()) == rows

    if way != "an unseen statement":
        before = project.state()
        assert "The Python model writes to a table" in project.fail("--empty")
        with project.dry_run():
            assert "The Python model writes to a table" in project.fail()
        assert project.state() == before


def test_a_pre_hook_may_drop_a_table_that_is_built_anew(project: Project) -> None:
    drop = "drop table if exists {{ this }}"
    extended = {"materialized": "incremental", "unique_key": "id"}
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "mirrored": ({"materialized": "table", "unique_key": "id"}, ""),
        "not_mirrored": ({"materialized": "table", "mirror": False}, ""),
        "extended": (extended, "A hook has dropped"),
        "extended_not_mirrored": ({**extended, "mirror": False}, "compiled"),
    }
    for name, (config, _) in cases.items():
        project.model("select 1 as id", name, **config)
    project.run()
    for name, (config, _) in cases.items():
        project.model("select 2 as id", name, pre_hook=drop, **config)

    project.fail()

    for name, (_, told) in cases.items():
        message = project.results()[name]["message"]
        assert told in message
        assert "post-hook" not in message
        assert "is gone" not in message
    assert project.results()["mirrored"]["adapter_response"]["rows_inserted"] == 1
    for name in ("mirrored", "not_mirrored"):
        assert project.results()[name]["status"] == "success"
    for name, (config, _) in cases.items():
        project.model("select 3 as id", name, **config)
    project.run()
    for name in ("mirrored", "extended"):
        project.assert_mirrored(name)
    for name, (config, _) in cases.items():
        project.model("select 4 as id", name, pre_hook=drop, **config)

    project.run("--full-refresh")

    for name in ("mirrored", "extended"):
        project.assert_mirrored(name)
        assert project.sql(f"select id from {project.schema}.{name}") == [(4,)]


def test_a_pre_hook_may_drop_a_table_with_held_rows(project: Project) -> None:
    config = {"materialized": "table", "unique_key": "id", "publish": "on_request"}
    project.model("select 1 as id", **config)
    project.run()
    assert project.dbt("run-operation", "mirror_publish")
    for number in (2, 3):
        project.model(f"select {number} as id", pre_hook="drop table {{ this }}", **config)
        project.run()

    assert project.dbt("run-operation", "mirror_publish")

    project.assert_mirrored()
    assert project.sql(f"select id from {project.schema}.orders") == [(3,)]


def test_a_post_hook_may_not_replace_the_table_by_anything(project: Project) -> None:
    as_text = f"table {{{{ this }}}} using {project.file_format} as select 'a' as id"
    cases: dict[str, tuple[dict[str, str], str, str]] = {
        "a_view": ({}, "view {{ this }} as select 1 as id", "A post-hook has replaced"),
        "a_table_that_needs_a_rebuild": (
            {"on_breaking_change": "fail"},
            as_text,
            "Nothing was published, but hooks and other code",
        ),
    }
    for name, (config, *_) in cases.items():
        project.model(THREE, name, unique_key="id", **config)
    project.run()
    for name, (config, replacement, _) in cases.items():
        hooks = ["drop table {{ this }}", f"create {replacement}"]
        project.model(THREE, name, unique_key="id", post_hook=hooks, **config)

    project.fail()

    for name, (config, _, told) in cases.items():
        message = project.results()[name]["message"]
        assert told in message
        assert "Nothing was changed" not in message
        assert len(project.mirror(name)) == 3
        project.model(THREE, name, unique_key="id", **config)
    project.run()
    for name in cases:
        project.assert_mirrored(name)


# a macro in a hook that runs a statement of its own, and returns another one
ADD = """
{% macro add(id) %}
  {% if execute %}
    {% do run_query("insert into " ~ this ~ " values (" ~ id ~ ", 'macro')") %}
  {% endif %}
  {{ return("select 1") }}
{% endmacro %}
"""


def test_a_model_whose_sql_changes_its_own_table_is_refused_before_it_has_changed_it(
    project: Project,
) -> None:
    project.write("macros/add.sql", ADD)
    config = {"materialized": "incremental", "incremental_strategy": "append"}
    project.model("select 1 as id, 'model' as name", **config)
    project.run()
    before = project.state()
    project.model("-- {{ add(100) }}\nselect 2 as id, 'model' as name", **config)

    for args in ([], ["--empty"]):
        error = project.fail(*args)

        assert "model.shop.orders calls a macro that changes" in error
        assert "Call it in a `pre_hook` or `post_hook`" in error
        assert project.state() == before
    hooks = {"pre_hook": "{{ add(100) }}", "post_hook": "{{ add(200) }}"}
    project.model("select 2 as id, 'model' as name", **hooks, **config)
    project.run()
    project.assert_mirrored()
    assert sum(project.relation().values()) == 4


def test_a_model_may_read_its_own_table_in_a_macro(project: Project) -> None:
    last = 'with t as (select max(id) as id from " ~ this ~ ") select id from t'
    project.model(
        '{% set last = run_query("' + last.replace('\\"', '"') + '").rows[0][0] if '
        "is_incremental() else 0 %} select {{ last }} + 1 as id",
        materialized="incremental",
        unique_key="id",
    )
    project.run()
    project.run()

    project.assert_mirrored()
    assert sum(project.relation().values()) == 2


# Settings of a session that decide what is read and written, each the opposite of what is needed.
SETTINGS = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.files.maxRecordsPerFile": "1",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
}
VALUES = (
    "select id, date'1400-02-28' as day, timestamp'1400-02-28 01:02:03.000004Z' as at, "
    "cast(1.5 as decimal(9, 2)) as small, cast(1.5 as decimal(18, 2)) as large, "
    "named_struct('d', timestamp'1400-02-28 01:02:03Z', 'n', null) as nested, "
    "timestamp_ntz'1500-01-01 00:00:00' as local, map('a', '{{ var(\"n\") }}') as m "
    "from range({{ var('n') }})"
)


@pytest.mark.usefixtures("each_size")
def test_settings_of_hooks_do_not_reach_the_files(project: Project) -> None:
    statements = [f"set {name}={value}" for name, value in SETTINGS.items()]
    for place in (places := ("pre_hook", "post_hook", "sql_header")):
        setting: Any = ";".join(statements) if place == "sql_header" else statements
        project.model(VALUES, place, unique_key="id", **{place: setting})

    for n, publication in ((2, "initial"), (3, "changes")):
        project.run("--vars", f"n: {n}")
        for name, response in project.responses().items():
            assert response["publication"] == publication
            project.assert_mirrored(name)

    for place in places:
        assert_written_as_needed(project, place)


@pytest.mark.needs(local="a server's replica is not on this machine")
def test_settings_of_a_macro_do_not_reach_what_it_publishes_or_compares(project: Project) -> None:
    """A macro may call an operation, and a test of the project this package's own one."""
    sets = "".join(f"{{% do run_query('set {key}={value}') %}}" for key, value in SETTINGS.items())
    project.write(
        "macros/mine.sql",
        f"{{% macro publish_again() %}}{sets}"
        "{% do mirror_rebuild(table='orders') %}{% endmacro %}\n"
        f"{{% test is_mirrored(model) %}}{sets}"
        "{{ test_mirror_equals_model(model) }}{% endtest %}",
    )
    project.model(VALUES, unique_key="id")
    project.write("models/orders.yml", "models: [{name: orders, data_tests: [is_mirrored]}]")
    project.run("--vars", "n: 2")

    assert project.dbt("run-operation", "publish_again", "--vars", "n: 2")

    assert [path.name for path in project.files()] == [f"{1:020d}.parquet"]
    assert_written_as_needed(project)
    project.assert_mirrored()
    assert project.dbt("test", "--vars", "n: 2")


def assert_written_as_needed(project: Project, table: str = "orders") -> None:
    for path in project.files(table):
        schema, footer = pq.read_schema(path), pq.read_metadata(path)
        assert {str(schema.field(name).type) for name in ("at", "local")} == {
            "timestamp[us, tz=UTC]"
        }
        stored = {footer.schema.column(i).name: footer.schema.column(i) for i in range(5)}
        assert stored["small"].physical_type == "INT32"
        assert stored["large"].physical_type == "INT64"
        legacy = [key for key in footer.metadata or {} if b"legacy" in key]
        assert not legacy
        assert set(pq.read_table(path)["day"].to_pylist()) == {dt.date(1400, 2, 28)}


def test_another_current_schema_of_a_hook_does_not_matter(project: Project) -> None:
    use = ["create schema if not exists {{ this.schema }}_other", "use {{ this.schema }}_other"]
    project.model(THREE, unique_key="id", pre_hook=use)
    project.run()
    project.model(THREE.replace("'b'", "'B'"), unique_key="id", pre_hook=use)

    assert project.run()["rows_updated"] == 1
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("strategy", some(["merge", "append"]))
@pytest.mark.parametrize("by_hand", some([True, False]), ids=["by hand", "by a hook"])
def test_a_column_that_somebody_adds_and_fills_is_mirrored(
    project: Project, strategy: str, by_hand: bool
) -> None:
    config: dict[str, Any] = {"materialized": "incremental", "incremental_strategy": strategy}
    config |= {"unique_key": "id"} if strategy == "merge" else {}
    config["on_schema_change"] = "append_new_columns"
    statements = ["alter table {{ this }} add columns (x string default 'filled')"]
    if project.file_format != "parquet":
        added = "alter table {{ this }} add columns (x string)"
        statements = [added, "update {{ this }} set x = 'filled'"]
    rows = "select id, 'n' as name from range({{ var('from') }}, {{ var('from') }} + 12)"
    project.model(rows, **config, post_hook=[] if by_hand else statements)
    project.run("--vars", "from: 0")
    project.assert_mirrored()
    for statement in statements if by_hand else ():
        project.sql(statement.replace("{{ this }}", f"{project.schema}.orders"))
    project.model(f"select *, 'new' as x from ({rows})", **config)

    for start in (11, 20):
        project.run("--vars", f"from: {start + (strategy == 'append')}")
        project.assert_mirrored()

    assert {dict(row).get("x") for row in project.mirror()} == {"str filled", "str new"}
