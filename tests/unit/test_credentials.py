"""The landing zone in the profile; for its authentication see `test_authentication.py`."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.spark.connections import SparkCredentials
from dbt.config.renderer import ProfileRenderer
from dbt_common.context import InvocationContext
from dbt_common.events.event_catcher import EventCatcher
from dbt_common.events.event_manager_client import get_event_manager
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.credentials import ConnectionMethod, OpenMirroringCredentials
from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.spark.session import SESSION_SETTINGS
from dbt.adapters.openmirroring.text.shown import shown_url
from dbt.include import openmirroring

ONELAKE = "https://onelake.dfs.fabric.microsoft.com/shop/m.MirroredDatabase/Files/LandingZone"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"landing_zone": None}, "Must specify `landing_zone`"),
        ({"landing_zone": ONELAKE.replace("https", "http")}, "neither a local folder nor"),
        ({"landing_zone": ONELAKE.replace("microsoft", "example")}, "not one of OneLake's"),
        ({"landing_zone": ONELAKE, "replicate": True}, "a landing zone on this machine"),
        ({"landing_zone": "landing", "staging_location": "staging"}, "in OneLake only"),
        ({"landing_zone": ONELAKE, "staging_location": "nowhere://x"}, "cannot be read here"),
        ({"landing_zone": "landing", "replicate": True}, "ends in Files/LandingZone"),
        ({"landing_zone": ONELAKE, "staging_location": "s3:/a"}, r"Is it s3://a\?"),
    ],
)
def test_a_landing_zone_that_cannot_be_used_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(DbtConfigError, match=message):
        OpenMirroringCredentials(schema="analytics", **settings)


def load(**settings: Any) -> OpenMirroringCredentials:
    """Read the settings as dbt does."""
    given = {"schema": "analytics", "landing_zone": "landing", **settings}
    OpenMirroringCredentials.validate(given)
    return OpenMirroringCredentials.from_dict(given)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"wait_for_mirror": True}, "`wait_for_mirror` is true. It must be a number."),
        ({"wait_for_mirror": "60"}, '`wait_for_mirror` is "60". It must be a number.'),
        ({"query_retries": 0.5}, "`query_retries` is 0.5. It must be a whole number."),
        ({"dry_run": "yes"}, '`dry_run` is "yes". It must be true or false.'),
        ({"schema": 5}, "`schema` is 5. It must be text, in quotes."),
        ({"source": "x"}, '`source` is "x". It must be names with values.'),
        ({"method": "spark"}, '`method` is "spark". Allowed: session, connect, livy, thrift,'),
        ({"client_secret": 1234}, "`client_secret` is of another type. It must be text"),
        (
            {"server_side_parameters": {"spark.key": [1234]}},
            "`server_side_parameters.spark.key` is of another type. It must be text",
        ),
        ({"workspaceid": "x"}, "Remove it: `landing_zone` names the workspace and the mirrored"),
        ({"lakehouse": "x"}, "Remove it: `landing_zone` names the workspace and the mirrored"),
        ({"landing_zon": "x"}, "`landing_zon` is not a setting of `method: session`. Did you"),
    ],
)
def test_a_setting_that_is_not_valid_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DbtConfigError) as error:
        load(**settings)

    assert message in str(error.value)
    assert "1234" not in str(error.value)
    assert "Failed validating" not in str(error.value)


@pytest.mark.parametrize(
    ("landing_zone", "meant"),
    [
        (ONELAKE.removeprefix("https://"), ONELAKE),
        (ONELAKE.replace("//", "/", 1), ONELAKE),
        (ONELAKE.replace("//", "", 1), ONELAKE),
        (f"{ONELAKE[8:].partition('/')[0]}:443/shop", "https://onelake.*:443/shop"),
        ("abfss:/ws@onelake.dfs.fabric.microsoft.com/m", "abfss://ws@onelake.*"),
        ("ws@onelake.dfs.fabric.microsoft.com/m.MirroredDatabase", "https://onelake.*"),
        ("https:/me:s3cret@onelake.dfs.fabric.microsoft.com/m", "https://onelake.*/m"),
        ("file:/data/zone", "file://data/zone"),
    ],
)
def test_a_url_with_a_typing_error_is_not_taken_for_a_folder(
    landing_zone: str, meant: str
) -> None:
    with pytest.raises(DbtConfigError, match=rf"no URL\. Is it {meant}\?") as refused:
        OpenMirroringCredentials(schema="analytics", landing_zone=landing_zone)

    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "landing_zone",
    [
        *("mirror.MirroredDatabase/Files/LandingZone", "/data/zone", "~/zone", "../zone"),
        *("./example.com/zone", "my.shop.MirroredDatabase/Files", "a@b/zone", "größe"),
    ],
)
def test_a_folder_may_have_any_other_name(landing_zone: str) -> None:
    given = OpenMirroringCredentials(schema="analytics", landing_zone=landing_zone)

    assert given.onelake is None


@pytest.mark.parametrize("landing_zone", [".", "./", "..", "/", "~", "models/..", "~/.."])
def test_a_landing_zone_contains_neither_the_project_nor_the_home_folder(
    landing_zone: str, tmp_path: Path
) -> None:
    given = OpenMirroringCredentials(schema="analytics", landing_zone=landing_zone)
    destination = Destination(given, project=lambda: tmp_path, warehouse=lambda: None)

    with pytest.raises(DbtConfigError, match=r"which contains (the dbt project|your home)"):
        destination.storage()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mirror/Files/Landing Zone@home?;", "mirror/Files/Landing Zone@home?;"),
        ("s3a://bucket/staging", "s3a://bucket/staging"),
        ("s3a://bucket/me@home", "s3a://bucket/me@home"),
        ("s3a://AKIA:s3cret@bucket/staging", "s3a://bucket/staging"),
        ("s3a://AKIA:s3/cr@et@bucket/staging", "s3a://bucket/staging"),
        ("ftp://s3cret@host/staging", "ftp://host/staging"),
        ("https://host/staging?sv=1&sig=s3cret", "https://host/staging"),
        ("https://host/staging#s3cret", "https://host/staging"),
        ("https://host/staging?sig=s3@cret", "https://..."),
        ("https://me:s3?cret@host/staging", "https://..."),
        (
            "abfss://box@account.dfs.core.windows.net/a",
            "abfss://box@account.dfs.core.windows.net/a",
        ),
        ("abfss://box:s3cret@account/a?sig=s3cret", "abfss://account/a"),
        ("sc://spark:15002/;user_id=me;x-key=s3cret", "sc://spark:15002/"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    "settings",
    [
        {"staging_location": "memory://me:s3cret@bucket/staging?sig=s3cret"},
        {"method": ConnectionMethod.CONNECT, "host": "sc://me:s3cret@spark:15002/;x-key=s3cret"},
        {"method": ConnectionMethod.HTTP, "host": "https://me:s3cret@spark/path?sig=s3cret"},
    ],
)
def test_debug_shows_no_secret_in_a_url(settings: dict[str, Any]) -> None:
    given = OpenMirroringCredentials(schema="analytics", landing_zone=ONELAKE, **settings)
    option = "host" if "host" in settings else "staging_location"

    shown = dict(given.connection_info())

    assert shown[option] in str(settings[option]).replace("me:s3cret@", "")
    assert "s3cret" not in str(shown)


@pytest.mark.parametrize(
    "settings",
    [
        {"landing_zone": "https://me:s3/cret@onelake.dfs.fabric.microsoft.com/x"},
        {"landing_zone": ONELAKE.replace("//", "//me:s3cret@")},
        {"landing_zone": ONELAKE, "staging_location": "nowhere://me:s3cret@x"},
        {"landing_zone": "zone", "method": "connect", "host": "https://me:s3cret@spark"},
    ],
)
def test_a_url_that_is_refused_is_reported_without_secrets(settings: dict[str, Any]) -> None:
    with pytest.raises(DbtConfigError) as refused:
        OpenMirroringCredentials(schema="analytics", **settings)

    assert "s3" not in str(refused.value)
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize("method", [method.value for method in ConnectionMethod])
@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("dry_rum", "Did you mean `dry_run`?"),
        ("staging_locaton", "Did you mean `staging_location`?"),
        ("server_side_parameter", "Did you mean `server_side_parameters`?"),
        ("account", "Remove it."),
    ],
)
def test_a_setting_with_an_unknown_name_is_refused(method: str, name: str, remedy: str) -> None:
    profile = {"schema": "analytics", "landing_zone": "zone", "method": method, name: "x"}

    with pytest.raises(DbtConfigError) as refused:
        OpenMirroringCredentials.from_dict(profile)

    assert refused.value.msg == f"`{name}` is not a setting of `method: {method}`. {remedy}"


def test_a_setting_of_earlier_versions_is_only_warned_of() -> None:
    told = EventCatcher(Note)
    get_event_manager().add_callback(told.catch)

    load(prepared_start=False)

    assert "prepared_start` has no effect any more" in str(told.caught_events[0].info)


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
    profile = {
        "schema": "analytics",
        "landing_zone": "zone",
        "method": "connect",
        "host": "sc://spark",
    }

    given = OpenMirroringCredentials.from_dict(
        profile | {"server_side_parameters": {name: "other"}}
    )

    assert given.server_side_parameters[name] == SESSION_SETTINGS[name]


def test_a_statement_that_may_have_run_is_not_sent_again_by_thrift() -> None:
    given = OpenMirroringCredentials.from_dict({"schema": "analytics", "landing_zone": "zone"})

    assert given.query_retries == 0


def test_debug_shows_the_identity_that_asks_for_tokens() -> None:
    shown = dict(
        OpenMirroringCredentials(
            schema="analytics",
            landing_zone=ONELAKE,
            authentication="service_principal",
            tenant_id="tenant",
            client_id="client",
            client_secret="s3cret",
        ).connection_info()
    )

    assert shown["landing_zone"] == ONELAKE
    assert shown["authentication"] == "service_principal"
    assert (shown["tenant_id"], shown["client_id"]) == ("tenant", "client")
    assert "s3cret" not in str(shown)


@pytest.mark.parametrize(
    "settings",
    [
        {"method": ConnectionMethod.CONNECT, "host": "sc://spark:15002"},
        {"server_side_parameters": {"spark.master": "local[2]"}},
    ],
)
def test_another_spark_has_no_folder_of_the_embedded_one(settings: dict[str, Any]) -> None:
    with pytest.raises(DbtConfigError, match="for the embedded Spark only"):
        OpenMirroringCredentials(
            schema="analytics", landing_zone="landing", spark_folder="/var/spark", **settings
        )


def test_the_type_is_that_of_spark_too() -> None:
    type_ = OpenMirroringCredentials(schema="analytics", landing_zone="zone").type

    assert type_ == "spark"
    assert type_ == "openmirroring"
    assert type_ in ("spark", "databricks")
    assert type_ not in ("databricks", "openmirror")
    assert (type_ != "spark", type_ != "openmirroring", type_ != "bigquery") == (
        False,
        False,
        True,
    )


def test_as_text_and_as_a_key_the_type_is_that_of_this_adapter() -> None:
    type_ = OpenMirroringCredentials(schema="analytics", landing_zone="zone").type

    assert json.dumps([f"{type_}", type_]) == '["openmirroring", "openmirroring"]'
    assert {"spark": 1, "openmirroring": 2}[type_] == 2


def test_target_has_what_packages_read_and_debug_only_what_the_method_uses() -> None:
    given = OpenMirroringCredentials(schema="analytics", landing_zone="zone")

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
