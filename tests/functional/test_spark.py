"""Spark is used politely: nothing leaks, and what the user set stays set."""

from __future__ import annotations

import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.spark.embedded.jvm import properties
from dbt.adapters.openmirroring.spark.session import SESSION_SETTINGS, PySparkHandle
from tests.functional.conftest import SECRET
from tests.functional.project import Project
from tests.unit.macros.cases import CASES


@pytest.mark.core
def test_every_model_has_the_settings_of_the_profile_and_nothing_of_the_one_before(
    project: Project,
) -> None:
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": "Europe/Oslo"}
    project.write_project()
    hooks = [
        "set spark.sql.session.timeZone=Asia/Tokyo",
        "create temporary view mine as select 1 as id",
    ]
    project.model("select id, current_timezone() as z from mine", "a", pre_hook=hooks)
    project.model("select current_timezone() as z -- after {{ ref('a') }}", "b")
    project.model("select * from mine -- after {{ ref('a') }}", "c")

    message = project.fail("--threads", "1")

    assert "TABLE_OR_VIEW_NOT_FOUND" in message
    assert project.results()["a"]["status"] == "success"
    assert list(project.relation("a")) == [(("id", "int 1"), ("z", "str Asia/Tokyo"))]
    assert list(project.relation("b")) == [(("z", "str Europe/Oslo"),)]


@pytest.mark.needs(session="servers are asked through sessions of dbt")
def test_a_session_that_the_user_brought_keeps_its_settings_and_models_have_them(
    project: Project, spark: SparkSession
) -> None:
    """Also those that Spark does not know."""
    keys = ("fs.azure.account.key.shop", "spark.sql.catalog.lake.secret")
    code = f"""\
        def model(dbt, session):
            found = [(key, session.conf.get(key, "")) for key in {list(keys)}]
            return session.createDataFrame(found, "key string, value string")
        """
    project.write("models/seen.py", textwrap.dedent(code))
    project.model("select current_timezone() as z, timestamp'2024-07-01 12:00:00' as t")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    for key in keys:
        spark.conf.set(key, f"of {key}")
    before = {row.key: row.value for row in spark.sql("set").collect()}
    try:
        project.run()

        assert {row.key: row.value for row in spark.sql("set").collect()} == before
        (mirrored,) = project.mirror()
        assert dict(mirrored) == {"z": "str Europe/Berlin", "t": "2024-07-01T10:00:00"}
        seen = [dict(row) for row in project.mirror("seen")]
        told = {row["key"]: row["value"] for row in seen}
        assert told == {f"str {key}": f"str of {key}" for key in keys}
        project.model("select cast('x' as int) as n")
        assert "CAST_INVALID_INPUT" in project.fail()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.set("spark.sql.ansi.enabled", "false")
        for key in keys:
            spark.conf.unset(key)


@pytest.mark.needs(session="a server interrupts its sessions itself")
def test_cancelling_ends_the_jobs_of_a_connection_and_no_others(spark: SparkSession) -> None:
    long = "select sum(hash(a.id, b.id)) from range(1000000) a cross join range(1000000) b"
    tracker = spark.sparkContext.statusTracker()

    def of_dbt(opened: list[PySparkHandle]) -> None:
        opened.append(PySparkHandle(spark.newSession(), {}))
        opened[0].execute(long)
        opened[0].fetchall()

    def of_user() -> None:
        spark.sql(long).collect()

    handles: list[PySparkHandle] = []
    with ThreadPoolExecutor(2) as pool:
        user = pool.submit(of_user)
        while not tracker.getActiveJobsIds():
            time.sleep(0.05)
        dbt = pool.submit(of_dbt, handles)
        try:
            while not dbt.done():  # its job may not have begun
                time.sleep(0.5)
                for handle in handles:
                    handle.cancel()

            assert "cancelled" in str(dbt.exception())
            assert not user.done()
        finally:
            while not (user.done() and dbt.done()):
                spark.sparkContext.cancelAllJobs()
                time.sleep(0.5)


def test_models_and_schemas_may_have_any_name_that_spark_allows(project: Project) -> None:
    for name in ("select", "Mixed_Case", "order"):
        project.model("select 1 as id", name=name, unique_key="id")
    both = "select * from {{ ref('select') }}, {{ ref('order') }}"
    project.model(f"select count(*) as n from ({both})", name="joined")

    for _ in range(2):
        project.run()

    for name in ("select", "Mixed_Case", "order"):
        project.assert_mirrored(name)


@pytest.mark.needs(local="a landing zone in OneLake has the folder that Fabric gives it")
def test_a_landing_zone_may_be_in_a_folder_of_any_name(project: Project) -> None:
    folder = project.path / "it's a 100% #1 path+ünï" / "[brackets] {braces} *stars?"
    project.landing_zone = folder / "LandingZone"
    project.target["landing_zone"] = str(project.landing_zone)
    project.write_project()
    for rows in (3, 4):
        project.model(f"select id from range({rows})", unique_key="id")
        project.run()

    replicable = project.path / "plain" / "Files" / "LandingZone"
    replicable.parent.mkdir(parents=True)
    replicable.symlink_to(project.landing_zone)
    project.landing_zone = replicable
    project.assert_mirrored()


@pytest.mark.needs(local="a landing zone in OneLake has the folder that Fabric gives it")
def test_a_schema_may_be_in_a_catalog_that_is_named(project: Project, file_format: str) -> None:
    catalog = "ice" if file_format == "iceberg" else "spark_catalog"
    project.name_schema(f"{catalog}.{project.schema}")
    project.model("select max(id) as id from {{ ref('orders') }}", "last", unique_key="id")
    for rows in (3, 4, 4):
        project.model(f"select id from range({rows})", unique_key="id")
        response = project.run()
        project.assert_mirrored()

    assert response["publication"] == "unchanged"
    project.model("select 9L as id", materialized="incremental", unique_key="id")
    project.run()
    project.assert_mirrored()
    project.run("--full-refresh")
    project.assert_mirrored()


@pytest.mark.needs(session="parses in this process")
def test_sql_of_macros_is_valid_where_spark_reserves_the_words_of_the_standard(
    spark: SparkSession,
) -> None:
    strict = spark.newSession()
    strict.conf.set("spark.sql.ansi.enabled", "true")
    strict.conf.set("spark.sql.ansi.enforceReservedKeywords", "true")
    with pytest.raises(ParseException):
        strict.sql("explain select 1 order by all")

    for case in CASES:
        sql = case.sql()
        if sql.startswith("describe history"):  # only Delta's own parser knows it
            continue
        if case.macro == "mirror_in_batch":  # a condition
            sql = f"select * from t where {sql}"
        strict.sql(f"explain {sql if sql[0].isalpha() else f'select * from {sql}'}")


@pytest.mark.needs(session="servers are started by somebody else")
def test_the_embedded_spark_does_not_follow_settings_that_change_what_files_say(
    spark: SparkSession,
) -> None:
    assert {name: spark.conf.get(name) for name in SESSION_SETTINGS} == SESSION_SETTINGS


@pytest.mark.needs(session="servers are started by somebody else")
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs Linux")
def test_settings_reach_the_embedded_spark_unseen(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    process = jvm.java.lang.ProcessHandle.current().pid()
    command = Path(f"/proc/{process}/cmdline").read_text().split("\0")
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()

    memory = f"-Xmx{spark.conf.get('spark.driver.memory')}"
    assert memory in command, "Spark had its settings when it started"
    assert hadoop.get("fs.s3a.secret.key") == SECRET
    assert not [argument for argument in command if SECRET in argument]
    # only the user of this process may read the file, and then it is gone
    submitted = Path(command[command.index("--properties-file") + 1])
    assert not submitted.exists()
    assert not [path for path in submitted.parents[1].iterdir() if _has_secret(path)]


def _has_secret(path: Path) -> bool:
    return path.is_file() and SECRET.encode() in path.read_bytes()


@pytest.mark.needs(session="servers are started by somebody else")
def test_spark_reads_any_setting_as_it_was_written(spark: SparkSession) -> None:
    settings = {
        "spark.plain": "a",
        "spark.empty": "",
        "spark.spaces": "  a  b ",
        "spark.key with: = #!": "a=b:c #d !e",
        "spark.backslash": "C:\\new\\u0041\\",
        "spark.lines": "a\nb\r\n\tc",
        "spark.java": '"-Da=b c" -Xss4m',
        "spark.letters": "äß\u20ac\U0001f600\x00\x7f\x85",
        "#comment": "!",
    }
    jvm = spark._jvm
    assert jvm is not None
    read = jvm.java.util.Properties()

    read.load(jvm.java.io.StringReader(properties(settings)))

    assert {key: read.getProperty(key) for key in read.stringPropertyNames()} == settings


@pytest.mark.needs(session="servers may have the driver")
def test_a_spark_without_a_driver_for_onelake_says_so(project: Project) -> None:
    staging = "abfss://shop@onelake.dfs.fabric.microsoft.com/mirror.MirroredDatabase/Files"
    write = f"insert overwrite directory '{staging}' using parquet select 1 as id"
    project.model("select 1 as id", pre_hook=write)

    message = project.fail()

    assert "SecureAzureBlobFileSystem not found" in message
    assert "`staging_location`" in message
