from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.onelake_server import OneLakeServer

TESTS = Path(__file__).parent
SLOW_FOLDERS = (
    *(f"functional/{name}" for name in ("environments", "elsewhere", "faults", "processes")),
    "recipes",
)
# those whose slow tests show what no other test does
ONCE_FOLDERS = ("unit", "functional/processes")

# how long a test takes is not what it asserts
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--onelake",
        action="store_true",
        help="let functional tests publish to OneLake's URL, which a server of the tests answers",
    )
    parser.addoption(
        "--method",
        choices=("session", "connect", "livy", "thrift"),
        default="session",
        help="how functional tests reach Spark; what is not session is a server of the tests",
    )
    parser.addoption(
        "--file-format",
        choices=("parquet", "delta", "iceberg"),
        default="parquet",
        help="of the tables that functional tests make in Spark; jars come from Maven Central",
    )
    parser.addoption(
        "--interpreted",
        action="store_true",
        help="let the embedded Spark interpret expressions: faster for few rows",
    )
    parser.addoption(
        "--many",
        action="store_true",
        help="try ten times as many generated histories and losses of power",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(TESTS / "unit"):
            item.add_marker(pytest.mark.core)
        if any(item.path.is_relative_to(TESTS / folder) for folder in SLOW_FOLDERS):
            item.add_marker(pytest.mark.slow)
        is_once = any(item.path.is_relative_to(TESTS / folder) for folder in ONCE_FOLDERS)
        if is_once or not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.once)


@pytest.fixture(scope="session")
def many(request: pytest.FixtureRequest) -> bool:
    """Whether more of what is generated is to be tried."""
    return bool(request.config.getoption("--many"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneLakeServer]:
    """OneLake, with nothing in its landing zone; whatever must not happen there fails the test."""
    started = OneLakeServer()
    started.connect(monkeypatch)
    yield started
    assert not started.violations
