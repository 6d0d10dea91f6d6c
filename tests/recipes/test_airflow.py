"""Airflow runs a project as one task or as one task for each node, and mails what it needs."""

from __future__ import annotations

import email
import html
import socketserver
import threading
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

from tests.recipes.recipe import Recipe, comparable, told

# the tests tell nobody that they ran, and load no examples
SETTINGS = {"DO_NOT_TRACK": "True", "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}


class MailServer(socketserver.TCPServer):
    """A server for mails of SMTP, which keeps what it gets."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Delivery)
        self.mails: list[Message] = []


class _Delivery(socketserver.StreamRequestHandler):
    """One connection: everything is accepted."""

    server: MailServer

    def handle(self) -> None:
        self.wfile.write(b"220 ready\r\n")
        for line in self.rfile:
            match line.split()[0].upper():
                case b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    content = b"".join(iter(self.rfile.readline, b".\r\n"))
                    self.server.mails.append(email.message_from_bytes(content))
                    self.wfile.write(b"250 taken\r\n")
                case b"QUIT":
                    self.wfile.write(b"221 bye\r\n")
                    return
                case _:
                    self.wfile.write(b"250 yes\r\n")


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    with MailServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def airflow(tmp_path: Path) -> Recipe:
    recipe = Recipe("Airflow", tmp_path)
    recipe.set_up()
    # minutes between two tries are for real failures
    recipe.replace("dags/shop.py", "retries=1", "retries=0")
    recipe.replace("dags/shop_nodes.py", '"retries": 1', '"retries": 0')
    return recipe


def test_one_task_publishes_everything_and_so_does_one_task_for_each_node(
    airflow: Recipe,
) -> None:
    *first, one_task, folder, pool, each_node = airflow.commands()
    build = airflow.shell("\n".join([*first, one_task]), SETTINGS)
    assert not build.returncode
    assert airflow.published() == {"orders": [6], "customers": [3]}
    airflow.replace("models/orders.sql", "range(6)", "range(9)")

    nodes = airflow.shell("\n".join([*first, folder, pool, each_node]), SETTINGS)

    assert not nodes.returncode
    assert airflow.published() == {"orders": [6, 3], "customers": [3, 3]}
    printed = "".join([build.stdout, build.stderr, nodes.stdout, nodes.stderr])
    for line in airflow.shown():
        assert line in comparable(printed)


def test_a_mail_says_what_a_held_table_waits_for(airflow: Recipe, mail_server: MailServer) -> None:
    airflow.take("alerts")
    airflow.replace("models/orders.sql", "id * 10 as amount", "nullif(id, 5) * 10 as amount")
    *first, build, _folder, _pool, _each_node = airflow.commands()
    assert airflow.shell("\n".join([*first, build]), SETTINGS).returncode
    url = f"smtp://127.0.0.1:{mail_server.server_address[1]}/?disable_ssl=true&disable_tls=true"

    check = build.replace("test shop", "test shop_check")
    result = airflow.shell(
        "\n".join([*first, check]), {**SETTINGS, "AIRFLOW_CONN_SMTP_DEFAULT": url}
    )

    assert result.returncode
    [mail] = mail_server.mails
    assert mail["subject"] == "A mirrored table needs somebody"
    [body] = [part for part in mail.walk() if part.get_content_type() == "text/html"]
    payload = body.get_payload(decode=True)
    assert isinstance(payload, bytes)
    assert told("alerts", "sales.orders: held") in html.unescape(payload.decode())
