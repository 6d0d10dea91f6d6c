"""Names, values and sizes that nobody should use: each works exactly, or is refused in time.

All inputs of a kind are in one project, a model each: so a run or two show all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.functional.processes.test_processes import dbt
from tests.functional.project import Project
from tests.variants import some

ROWS = "select id, concat('v', id) as name from range(3)"

# this would follow the end of a literal or a name
INJECTED = "x'; drop table victim; --"

# an alias, and what the message has
ALIASES: dict[str, str] = {
    "..": "Spark makes a folder of it",
    "../../../up": "Spark makes a folder of it",
    "/etc/passwd": "Spark makes a folder of it",
    "a/b": "Spark makes a folder of it",
    "a\x00b": "Spark makes a folder of it",
    "a\nb": "folder of the landing zone",
    "a\u202eb": "folder of the landing zone",
    "_a": "folder of the landing zone",
    "a*": "folder of the landing zone",
    "a" * 129: "longer than 128 characters",
    "列" * 100: "longer than 220 bytes",
    "a.b": "contains a dot",
    "a b": "INVALID_SCHEMA_OR_RELATION_NAME",
    "a`b": "INVALID_ATTRIBUTE_NAME_SYNTAX",
    "a'b": "INVALID_SCHEMA_OR_RELATION_NAME",
    "🦊": "INVALID_SCHEMA_OR_RELATION_NAME",
}

# configuration that is refused, and what the message has
CONFIGS: list[tuple[dict[str, Any], str]] = [
    ({"unique_key": INJECTED}, "no such column"),
    ({"unique_key": "id, name"}, "no such column"),
    ({"partition_by": "name) as select 1 as id --"}, "name) as select 1 as id --"),
    ({"clustered_by": "name) into 1 buckets --", "buckets": 2}, "name) into 1 buckets --"),
    ({"file_format": "parquet as select 1 as id --"}, "must be the name of a format"),
    ({"compression": "zstd') select 1 --"}, "Allowed: none, snappy"),
    ({"incremental_strategy": INJECTED, "materialized": "incremental"}, "Allowed: append, merge"),
]

# names of columns, each of a key and of another column
COLUMNS = [
    "`",
    "a`b",
    '"',
    INJECTED,
    "x`; drop table victim; --",
    ") from victim --",
    "/* */",
    "--",
    "a\nb",
    "a\x01b",
    "\\",
    "\\'",
    " ",
    " a ",
    ".",
    "a.b",
    "🦊",
    "e\u0301",
    "\u202eabc",
    "*",
    "{{ x }}",
    "x" * 300,
    "select",
    "DBT_INTERNAL_SOURCE",
    "latest.marker",
    "Table Properties: [openmirroring.batch_id=1]",
]

REFUSED_COLUMNS: dict[str, str] = {
    "__RowMarker__": "row marker",
    "a\x00b": "NUL",
    "_METADATA": "hides",
}

# texts that end up in SQL, and must come out as they are
TEXTS = [
    INJECTED,
    "ends with a backslash \\",
    "\\'; drop table victim; --",
    "line\nTable Properties: [openmirroring.batch_id=1]",
    "openmirroring.batch_id=1",
    "🦊 `\"' \\n {} %",
]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def raw(sql: str) -> str:
    """SQL with what has a meaning in Jinja, and with every kind of line end."""
    return f"{{{{ {sql!r} }}}}"


def run(project: Project, *args: str) -> dict[str, tuple[str, str]]:
    """Run all models; status and message of each.

    dbt's static parser takes an escaped character in `config()` for two.
    """
    project.dbt("run", "--no-static-parser", *args)
    return {name: (r["status"], r["message"]) for name, r in project.results().items()}


def refusals(project: Project) -> dict[str, str]:
    """Run all models; the message of each that is refused before the first node, or by its own."""
    before = project.stop("--no-static-parser")
    _, *found = re.split(r"model\.shop\.(\w+) \(models/\w+\.sql\): ", before)
    early = dict(zip(found[::2], found[1::2], strict=True))
    for name in early:
        (project.path / "models" / f"{name}.sql").unlink()
    late = run(project)
    return early | {name: text for name, (status, text) in late.items() if status == "error"}


@pytest.fixture
def hostile(spark: SparkSession, project: Project) -> Iterator[Project]:
    """A project with a table that is there at the end."""
    project.model("select 1 as id", "victim", unique_key="id")
    yield project
    assert project.relation("victim") == project.mirror("victim")
    assert len(project.relation("victim")) == 1


@pytest.mark.core
def test_names_of_tables_are_refused_before_anything_is_built(
    hostile: Project, file_format: str
) -> None:
    aliases = ALIASES
    if file_format == "iceberg":  # its catalog takes names that Spark's refuses
        aliases = {name: part for name, part in ALIASES.items() if not part.startswith("INVALID_")}
    for i, alias in enumerate(aliases):
        hostile.model(ROWS, f"m{i}", alias=alias, unique_key="id")
    around = {path for path in hostile.path.iterdir() if path.name not in ("target", "logs")}

    found = refusals(hostile)

    for i, (alias, part) in enumerate(aliases.items()):
        assert part in found[f"m{i}"], repr(alias)
    (schema,) = hostile.landing_zone.glob("*.schema")
    assert [table.name for table in schema.iterdir()] == ["victim"]
    assert hostile.tables() == ["victim"]
    new = {path.name for path in hostile.path.iterdir()} - {path.name for path in around}
    assert new <= {"target", "logs", "mirror.MirroredDatabase", "staging", ".user.yml"}


def test_a_path_is_no_name_of_a_table_that_is_not_mirrored(
    project: Project, tmp_path: Path
) -> None:
    kept = tmp_path / "kept" / "file"
    kept.parent.mkdir()
    kept.write_text("of somebody else")
    project.model("select 1 as id", alias=str(kept.parent), mirror=False)

    for args in ((), ("--empty",)):
        assert "cannot be the name of a table" in project.fail(*args)

    assert kept.read_text() == "of somebody else"


@pytest.mark.parametrize("schema", some(["../up", "a/b", "a`; drop schema x; --", "x" * 129]))
def test_names_of_schemas_are_refused_before_anything_is_built(
    project: Project, schema: str
) -> None:
    project.target["schema"] = schema
    project.write_project()
    project.model(ROWS, unique_key="id")

    assert not project.dbt("run")

    assert not [path for path in project.landing_zone.rglob("*") if path.is_file()]
    assert not (project.landing_zone.parent / "up.schema").exists()


def test_configuration_is_refused_before_anything_is_published(hostile: Project) -> None:
    for i, (config, _) in enumerate(CONFIGS):
        hostile.model(ROWS, f"m{i}", **config)

    found = refusals(hostile)

    for i, (config, part) in enumerate(CONFIGS):
        assert part in found[f"m{i}"], config
    (schema,) = hostile.landing_zone.glob("*.schema")
    assert [table.name for table in schema.iterdir()] == ["victim"]
    assert hostile.tables() == ["victim"]


@pytest.mark.slow
def test_every_name_of_a_column_works_as_key_and_as_value(hostile: Project) -> None:
    for step in (0, 1):
        for i, name in enumerate(COLUMNS):
            key = f"{name}k"
            columns = (
                f"id as {quoted(key)}, concat(id, if(id = 1, '{step}', '')) as {quoted(name)}"
            )
            sql = raw(f"select {columns} from range({2 + step})")
            hostile.model(sql, f"m{i}", unique_key=key)
        for i, name in enumerate(REFUSED_COLUMNS):
            hostile.model(raw(f"select 1 as id, 2 as {quoted(name)}"), f"r{i}", unique_key="id")
        found = run(hostile)

        for i, name in enumerate(COLUMNS):
            status, message = found[f"m{i}"]
            assert status == "success", (name, message)
            assert message.startswith("+1 ~1 -0" if step else "initial +2"), (name, message)
            hostile.assert_mirrored(f"m{i}")
        for i, part in enumerate(REFUSED_COLUMNS.values()):
            assert found[f"r{i}"][0] == "error"
            assert part in found[f"r{i}"][1]
            assert not hostile.folder(f"r{i}").exists()


@pytest.mark.needs(parquet="Delta and Iceberg refuse them themselves")
def test_columns_that_differ_in_case_only_are_refused(project: Project) -> None:
    project.target["server_side_parameters"] = {"spark.sql.caseSensitive": "true"}
    project.write_project()
    project.model("select 1 as id, 2 as name, 3 as NAME", unique_key="id")

    assert "'name' and 'NAME' differ only in case" in project.fail()

    assert not project.folder().exists()


def test_letters_that_are_only_alike_are_different_columns(project: Project) -> None:
    for value in ("a", "b"):
        project.model(
            f"select id as `Straße`, '{value}' as `Strasse` from range(2)", unique_key="straße"
        )
        response = project.run()
        project.assert_mirrored()
    assert response["rows_updated"] == 2
    assert '"Straße"' in (project.folder() / "_metadata.json").read_text()


def test_texts_come_out_as_they_are(hostile: Project) -> None:
    """In descriptions, properties of tables, options and seeds."""
    models = []
    for i, text in enumerate(TEXTS):
        hostile.model(
            ROWS,
            f"m{i}",
            unique_key="id",
            persist_docs={"relation": True, "columns": True},
            tblproperties={"a": text, "z": text},
        )
        column = {"name": "name", "description": text}
        models.append({"name": f"m{i}", "description": text, "columns": [column]})
    hostile.write("models/models.yml", json.dumps({"models": models}, ensure_ascii=False))
    names, values = (
        ",".join('"' + text.replace('"', '""') + '"' for text in texts)
        for texts in (["x\\", "x\\'y", "`", INJECTED.replace(";", "")], TEXTS[:4])
    )
    hostile.write("seeds/regions.csv", f"{names}\n{values}\n")

    hostile.run("--no-static-parser", command="seed")
    hostile.assert_mirrored("regions")
    assert {status for status, _ in run(hostile).values()} == {"success"}
    again = run(hostile)

    for i, text in enumerate(TEXTS):
        assert again[f"m{i}"][1].startswith("unchanged"), (text, again[f"m{i}"])
        hostile.assert_mirrored(f"m{i}")
        properties = hostile.sql(f"show tblproperties {hostile.schema}.m{i}")
        found = {row["key"]: row["value"] for row in properties}
        assert (found["a"], found["z"]) == (text, text)
        described = hostile.sql(f"describe table extended {hostile.schema}.m{i}")
        comments = {row["col_name"]: row["comment"] or row["data_type"] for row in described}
        assert (comments["name"], comments["Comment"]) == (text, text)


@pytest.mark.slow
def test_a_cell_of_64_mb(project: Project) -> None:
    for digit in "12":
        project.model(f"select 1 as id, repeat('{digit}', 67108864) as text", unique_key="id")
        project.run()
        assert project.mirror() == project.relation()


@pytest.mark.slow
def test_a_table_of_two_thousand_columns(project: Project) -> None:
    for value in (0, 1):
        columns = ", ".join(f"id + {value * (i == 1999)} as c{i}" for i in range(2000))
        project.model(f"select id, {columns} from range(3)", unique_key="id")
        response = project.run()
        project.assert_mirrored()
    assert response["rows_updated"] == 3


@pytest.mark.slow
def test_secrets_of_the_profile_are_in_no_file_and_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, variable = "hunter2-in-the-profile", "hunter2-in-the-environment"
    monkeypatch.setenv("STORAGE_KEY", variable)
    project = Project(tmp_path)
    project.target["server_side_parameters"] = {
        "spark.hadoop.fs.azure.account.key.a": secret,
        "spark.hadoop.fs.azure.account.key.b": "{{ env_var('STORAGE_KEY') }}",
    }
    project.write_project()
    project.model(ROWS, unique_key="id")
    project.model("select nonsense", "failing")

    outputs = [dbt(project.path, *command) for command in (("debug",), ("run", "--debug"))]
    outputs.append(dbt(project.path, "run-operation", "mirror_status"))

    assert "initial +3" in outputs[1].stdout
    for word in (secret.encode(), variable.encode()):
        assert not [o for o in outputs if word in (o.stdout + o.stderr).encode()]
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert [path.name for path in files if word in path.read_bytes()] == (
            ["profiles.yml"] if word == secret.encode() else []
        )


@pytest.mark.slow
def test_a_table_that_is_larger_than_the_memory_of_spark(tmp_path: Path) -> None:
    """One that cannot be compressed: 640 MB, in a heap of 512 MB that holds few groups of rows."""
    project = Project(tmp_path)
    project.target["server_side_parameters"] = {
        "spark.driver.memory": "512m",
        "spark.hadoop.parquet.block.size": str(16 * 2**20),
    }
    project.write_project()
    text = ", ".join(
        f"unhex(sha2(concat(id, '-', {i}, if(id % 100 = 0, '{{salt}}', '')), 512)) as b{i}"
        for i in range(10)
    )
    for salt, published in (("", "initial +1000000"), ("x", "+0 ~10000 -0")):
        sql = f"select id, {text.format(salt=salt)} from range(1000000)"
        project.model(sql, unique_key="id")
        done = dbt(project.path, "run")
        assert published in done.stdout
    assert project.mirror() == project.relation()
