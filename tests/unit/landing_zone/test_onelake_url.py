"""URLs of landing zones in OneLake."""

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl

HOST = "onelake.dfs.fabric.microsoft.com"
WORKSPACE = "6e335e92-a2a2-4b5a-970a-bd6a89fbb765"
ITEM = "cfafbeb1-8037-4d0c-896e-a46fb27ff229"
PRIVATE = "6e335e92a2a24b5a970abd6a89fbb765.z6e.dfs.fabric.microsoft.com"


@pytest.mark.parametrize(
    "url",
    [
        f"https://{HOST}/shop/mirror.MirroredDatabase/Files/LandingZone",
        f"https://{HOST}/shop/mirror.MirroredDatabase/Files/LandingZone/",
        "https://OneLake.dfs.fabric.microsoft.com/shop/mirror.MirroredDatabase/Files/LandingZone",
        f"https://{HOST}/shop/mirror.mirroreddatabase/Files/LandingZone",
        f"abfss://shop@{HOST}/mirror.MirroredDatabase/Files/LandingZone",
    ],
)
def test_the_forms_of_a_url_are_one_place(url: str) -> None:
    place = OneLakeUrl.parse(url)

    assert place == OneLakeUrl(HOST, "shop", "mirror.MirroredDatabase")
    assert place.account_url == f"https://{HOST}"
    assert place.root == "mirror.MirroredDatabase/Files/LandingZone"
    assert place.files_url == f"abfss://shop@{HOST}/mirror.MirroredDatabase/Files/LandingZone"


@pytest.mark.parametrize("host", [HOST, f"westeurope-{HOST}", PRIVATE])
def test_guids_and_every_host_of_onelake_are_taken(host: str) -> None:
    place = OneLakeUrl.parse(f"https://{host}/{WORKSPACE}/{ITEM}/Files/LandingZone")

    assert place == OneLakeUrl(host, WORKSPACE, ITEM)


def test_names_with_spaces_need_guids_only_for_spark() -> None:
    place = OneLakeUrl.parse(f"https://{HOST}/my%20shop/m.MirroredDatabase/Files/LandingZone")

    assert place.workspace == "my shop"
    with pytest.raises(DbtConfigError, match=r"'my shop'\. Use the GUIDs"):
        assert place.files_url


@pytest.mark.parametrize("portal", ["app.fabric.microsoft.com", "app.powerbi.com"])
def test_the_address_of_a_page_in_the_portal_leads_to_the_landing_zone(portal: str) -> None:
    page = f"https://{portal}/groups/{WORKSPACE}/mirroredDatabases/{ITEM}?experience=power-bi"

    with pytest.raises(DbtConfigError, match="a page in Fabric's portal") as error:
        OneLakeUrl.parse(page)

    right = str(error.value).split()[-1]
    assert OneLakeUrl.parse(right) == OneLakeUrl(HOST, WORKSPACE, ITEM)
    with pytest.raises(DbtConfigError, match="under `Landing zone`; it is https://onelake"):
        OneLakeUrl.parse(f"https://{portal}/home")


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        f"{HOST}.example.com",
        "onelake.dfs.fabric.microsoft.com.",
        "evilonelake.dfs.fabric.microsoft.com",
        "shop.dfs.core.windows.net",
        "onelake.blob.fabric.microsoft.com",
        "api.fabric.microsoft.com",
        f"{HOST}:8443",
        f"{HOST}@example.com",
    ],
)
@pytest.mark.parametrize("scheme", ["https://", "abfss://shop@"])
def test_tokens_are_sent_to_no_other_host(scheme: str, host: str) -> None:
    path = "m.MirroredDatabase/Files/LandingZone"

    with pytest.raises(DbtConfigError, match="not one of OneLake's"):
        OneLakeUrl.parse(f"{scheme}{host}/{path if '@' in scheme else f'shop/{path}'}")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://{}/shop/m.MirroredDatabase/Files/LandingZone", "neither a local folder nor"),
        ("s3://bucket/LandingZone", "neither a local folder nor in OneLake"),
        ("https://{}/shop/m.MirroredDatabase/Files", "a workspace, an item and Files/LandingZone"),
        ("https://{}/shop/m.MirroredDatabase/Tables/LandingZone", "a workspace, an item and"),
        ("https://{}/shop/m.MirroredDatabase/Files/LandingZone/a", "a workspace, an item and"),
        ("https://{}//m.MirroredDatabase/Files/LandingZone", "a workspace, an item and"),
        ("abfss://{}/m.MirroredDatabase/Files/LandingZone", "a workspace, an item and"),
        ("https://{}/../m.MirroredDatabase/Files/LandingZone", "not allowed"),
        (f"https://{{}}/shop/{ITEM}/Files/LandingZone", "either names or GUIDs"),
        (f"https://{{}}/{WORKSPACE}/m.MirroredDatabase/Files/LandingZone", "either names or"),
        ("https://{}/shop/mirror/Files/LandingZone", r"mirror\.MirroredDatabase\."),
        ("https://[{}/shop", "it is not a URL"),
        ("https://{}/shop/lake.Lakehouse/Files/LandingZone", "its item is a Lakehouse.*OM205"),
        ("https://{}/shop/lake.Lakehouse/Files", "its item is a Lakehouse.*OM205"),
        ("abfss://shop@{}/lake.Lakehouse/Files/LandingZone", "its item is a Lakehouse.*OM205"),
        ("https://{}/shop/my.shop/Files/LandingZone", r"add its type: my\.shop\.MirroredDatabase"),
    ],
)
def test_the_mistake_in_a_url_is_named(url: str, message: str) -> None:
    with pytest.raises(DbtConfigError, match=message):
        OneLakeUrl.parse(url.format(HOST))


@pytest.mark.parametrize(
    "url",
    [
        f"https://{HOST}/shop/m.MirroredDatabase/Files/LandingZone?sig=s3cret",
        f"https://me:s3cret@{HOST}/shop/m.MirroredDatabase/Files/LandingZone",
        f"abfss://shop:s3cret@{HOST}/m.MirroredDatabase/Files/LandingZone",
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(DbtConfigError) as refused:
        OneLakeUrl.parse(url)

    assert "s3cret" not in str(refused.value)
