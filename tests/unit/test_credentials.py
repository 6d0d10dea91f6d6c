"""The landing zone in the profile; for its authentication see `test_authentication.py`."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.spark.connections import SparkCredentials
from dbt.config.renderer import ProfileRenderer
from dbt_common.context import InvocationContext
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.credentials import ConnectionMethod, OpenMirroringCredentials
from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.spark.session import SESSION_SETTINGS
from dbt.include import openmirroring

HOST = "onelake.dfs.fabric.microsoft.com"
ONELAKE = f"https://{HOST}/shop/m.MirroredDatabase/Files/LandingZone"

# parts of what no message shows
SECRET = re.compile("pa55|w0rd|5555")


def load(**settings: Any) -> OpenMirroringCredentials:
    """Read the settings as dbt does."""
    given = {"schema": "analytics", "landing_zone": "landing", **settings}
    OpenMirroringCredentials.validate(given)
    return OpenMirroringCredentials.from_dict(given)


def onelake(**settings: Any) -> dict[str, Any]:
    return {"landing_zone": ONELAKE, **settings}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        # the landing zone
        ({"landing_zone": None}, "Must specify `landing_zone`"),
        ({"landing_zone": ONELAKE.replace("https", "http")}, "neither a local folder nor"),
        ({"landing_zone": ONELAKE.replace("microsoft", "example")}, "not one of OneLake's"),
        ({"landing_zone": f"https://me:pa55/w0rd@{HOST}/x"}, "`landing_zone` 'https://"),
        ({"landing_zone": ONELAKE.replace("//", "//me:pa55w0rd@")}, "`landing_zone` 'https://"),
        # a URL with a typing error is not taken for a folder
        ({"landing_zone": ONELAKE[8:]}, rf"no URL\. Is it {ONELAKE}\?"),
        ({"landing_zone": ONELAKE.replace("//", "/", 1)}, rf"no URL\. Is it {ONELAKE}\?"),
        ({"landing_zone": ONELAKE.replace("//", "", 1)}, rf"no URL\. Is it {ONELAKE}\?"),
        ({"landing_zone": f"{HOST}:443/shop"}, rf"no URL\. Is it https://{HOST}:443/shop\?"),
        ({"landing_zone": f"abfss:/ws@{HOST}/m"}, rf"no URL\. Is it abfss://ws@{HOST}"),
        ({"landing_zone": f"ws@{HOST}/m.MirroredDatabase"}, rf"no URL\. Is it https://{HOST}"),
        ({"landing_zone": f"https:/me:pa55w0rd@{HOST}/m"}, rf"no URL\. Is it https://{HOST}/m\?"),
        ({"landing_zone": "file:/data/zone"}, r"no URL\. Is it file://data/zone\?"),
        # what is beside it
        (onelake(replicate=True), "a landing zone on this machine"),
        ({"refresh_sql_endpoint": True}, "in OneLake only"),
        ({"staging_location": "staging"}, "in OneLake only"),
        (onelake(staging_location="nowhere://x"), "cannot be read here"),
        (onelake(staging_location="nowhere://me:pa55w0rd@x"), "cannot be read here"),
        (onelake(staging_location="s3:/a"), r"Is it s3://a\?"),
        # Spark
        ({"method": "connect", "host": "https://me:pa55w0rd@spark"}, "needs `host: sc:"),
        ({"method": "connect", "authentication": "token", "token": "5555"}, "sends the `token`"),
        (
            {"method": "connect", "host": "sc://spark:15002", "spark_folder": "/var/spark"},
            "for the embedded Spark only",
        ),
        (
            {
                "server_side_parameters": {"spark.master": "local[2]"},
                "spark_folder": "/var/spark",
            },
            "for the embedded Spark only",
        ),
        ({"spark_idle_timeout": "10"}, "must be a time such as `30s`.* not '10'"),
        # types of settings, and values
        ({"wait_for_mirror": -1}, "`wait_for_mirror` must be a number of seconds, 0 or more"),
        ({"wait_for_mirror": True}, "`wait_for_mirror` is true. It must be a number."),
        ({"wait_for_mirror": "60"}, '`wait_for_mirror` is "60". It must be a number.'),
        ({"query_retries": 0.5}, "`query_retries` is 0.5. It must be a whole number."),
        ({"dry_run": "yes"}, '`dry_run` is "yes". It must be true or false.'),
        ({"schema": 5}, "`schema` is 5. It must be text, in quotes."),
        ({"source": "x"}, '`source` is "x". It must be names with values.'),
        ({"method": "spark"}, '`method` is "spark". Allowed: session, connect, livy, thrift,'),
        ({"client_secret": 5555}, "`client_secret` is of another type. It must be text"),
        (
            {"server_side_parameters": {"spark.key": [5555]}},
            "`server_side_parameters.spark.key` is of another type. It must be text",
        ),
        # names of settings
        ({"workspaceid": "x"}, "Remove it: `landing_zone` names the workspace and the mirrored"),
        ({"lakehouse": "x"}, "Remove it: `landing_zone` names the workspace and the mirrored"),
        ({"staging_locaton": "x"}, r"of `method: session`\. Did you mean `staging_location`\?"),
        ({"account": "x"}, r"`account` is not a setting of `method: session`\. Remove it\.$"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_without_secrets(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(DbtConfigError, match=message) as refused:
        load(**settings)

    assert not SECRET.search(str(refused.value))
    assert "Failed validating" not in str(refused.value)


@pytest.mark.parametrize("method", [method.value for method in ConnectionMethod])
def test_a_misspelled_setting_is_refused_with_every_method(method: str) -> None:
    with pytest.raises(DbtConfigError) as refused:
        load(method=method, dry_rum=True)

    told = f"`dry_rum` is not a setting of `method: {method}`. Did you mean `dry_run`?"
    assert refused.value.msg == told


@pytest.mark.parametrize(
    "landing_zone",
    [
        *("mirror.MirroredDatabase/Files/LandingZone", "/data/zone", "~/zone", "../zone"),
        *("./example.com/zone", "my.shop.MirroredDatabase/Files", "a@b/zone", "größe"),
    ],
)
def test_a_folder_may_have_any_other_name(landing_zone: str) -> None:
    assert load(landing_zone=landing_zone).onelake is None


@pytest.mark.parametrize("landing_zone", [".", "./", "..", "/", "~", "models/..", "~/.."])
def test_a_landing_zone_contains_neither_the_project_nor_the_home_folder(
    landing_zone: str, tmp_path: Path
) -> None:
    given = load(landing_zone=landing_zone)
    destination = Destination(given, project=lambda: tmp_path, warehouse=lambda: None)

    with pytest.raises(DbtConfigError, match=r"which contains (the dbt project|your home)"):
        destination.storage()


@pytest.mark.parametrize(
    ("settings", "option", "seen"),
    [
        (
            {"staging_location": "memory://me:pa55w0rd@bucket/staging?sig=pa55w0rd"},
            "staging_location",
            "memory://bucket/staging",
        ),
        (
            {"method": "connect", "host": "sc://me:pa55w0rd@spark:15002/;x-key=pa55w0rd"},
            "host",
            "sc://spark:15002/",
        ),
        (
            {"method": "http", "host": "https://me:pa55w0rd@spark/path?sig=pa55w0rd"},
            "host",
            "https://spark/path",
        ),
        (
            {
                **{"authentication": "service_principal", "tenant_id": "tenant"},
                **{"client_id": "client", "client_secret": "pa55w0rd"},
            },
            "client_id",
            "client",
        ),
    ],
)
def test_debug_shows_places_and_identities_without_secrets(
    settings: dict[str, Any], option: str, seen: str
) -> None:
    shown = dict(load(**onelake(**settings)).connection_info())

    assert (shown["landing_zone"], shown[option]) == (ONELAKE, seen)
    assert not SECRET.search(str(shown))


def test_a_setting_is_also_taken_by_its_former_name() -> None:
    assert load(restore_snapshots=True).restore_baseline
    assert not load(restore_snapshots=False).restore_baseline
    with pytest.raises(DbtConfigError, match='`restore_baseline` is "yes"'):
        load(restore_snapshots="yes")
    with pytest.raises(DbtConfigError, match="`restore_snapshots` is not a setting"):
        load(restore_snapshots=True, restore_baseline=False)


def test_settings_of_dbt_spark_and_of_dbt_are_known() -> None:
    profile = {each.name: None for each in fields(SparkCredentials)} | {
        **{"type": "openmirroring", "threads": 4, "schema": "analytics", "landing_zone": "zone"},
        **{"method": "thrift", "host": "spark", "port": 10001, "connect_retries": 2},
        **{"connect_timeout": 3, "organization": "0", "use_ssl": True, "retry_all": True},
        **{"server_side_parameters": {"a": "b"}, "poll_interval": 1, "query_retries": 3},
    }

    given = OpenMirroringCredentials.from_dict(profile)

    assert (given.port, given.query_retries) == (10001, 3)


@pytest.mark.parametrize("name", SESSION_SETTINGS)
def test_no_server_follows_settings_that_change_what_files_say(name: str) -> None:
    given = load(method="connect", host="sc://spark", server_side_parameters={name: "other"})

    assert given.server_side_parameters[name] == SESSION_SETTINGS[name]


def test_a_statement_that_may_have_run_is_not_sent_again_by_thrift() -> None:
    assert load().query_retries == 0


def test_the_type_is_that_of_spark_too_and_as_text_and_as_a_key_that_of_this_adapter() -> None:
    type_ = load().type

    for name in ("spark", "openmirroring", "databricks", "openmirror"):
        assert (type_ == name) == (name in ("spark", "openmirroring"))
        assert (type_ != name) == (name not in ("spark", "openmirroring"))
    assert json.dumps([f"{type_}", type_]) == '["openmirroring", "openmirroring"]'
    assert {"spark": 1, "openmirroring": 2}[type_] == 2


def test_target_has_what_packages_read_and_debug_only_what_the_method_uses() -> None:
    given = load(landing_zone="zone")

    target, shown = dict(given.connection_info(with_aliases=True)), dict(given.connection_info())

    assert target == {
        **shown,
        **{"database": None, "host": "localhost", "port": 443, "organization": "0"},
        **{"cluster": None, "endpoint": None},
    }
    assert shown == {
        **{"method": "session", "schema": "analytics", "landing_zone": "zone"},
        "replicate": False,
    }


@pytest.mark.parametrize(
    ("variables", "schema"),
    [
        ({"USER": "anna"}, "dbt_anna"),
        ({"USERNAME": "anna.smith"}, "dbt_anna_smith"),
        ({}, "dbt_dev"),
    ],
    ids=["unix", "windows", "container"],
)
def test_a_new_profile_has_a_schema_for_each_developer(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], schema: str
) -> None:
    command = InvocationContext(variables)
    monkeypatch.setattr("dbt.context.secret.get_invocation_context", lambda: command)
    template = Path(openmirroring.__path__[0], "profile_template.yml")
    asked = yaml.safe_load(template.read_text())["prompts"]
    taken = {name: prompt["default"] for name, prompt in asked.items()}

    settings = ProfileRenderer().render_data(taken)

    assert settings["schema"] == schema
    settings.pop("threads")
    OpenMirroringCredentials.from_dict(settings)
