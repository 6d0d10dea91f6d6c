"""Texts of others in messages do nothing to the terminal, and URLs have no secrets."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.text.shown import shown, shown_url


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("model.shop.orders", "model.shop.orders"),
        ("one\n\n two\x1b[2J", "one two?[2J"),
        ("a" * 1000, "a" * 1000),
        ("a" * 1001, "a" * 997 + "..."),
    ],
    ids=["plain", "control characters", "longest", "too long"],
)
def test_a_text_of_others_is_one_line_of_limited_length(text: str, line: str) -> None:
    assert shown(text) == line


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
        ("abfss://box@account/a", "abfss://box@account/a"),
        ("abfss://box:s3cret@account/a?sig=s3cret", "abfss://account/a"),
        ("sc://spark:15002/;user_id=me;x-key=s3cret", "sc://spark:15002/"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert shown_url(url) == shown
