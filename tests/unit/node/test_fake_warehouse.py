"""The Spark of these tests has the macros of the package."""

from __future__ import annotations

import inspect

import pytest

from tests.unit.macros.test_macros import arguments_of
from tests.unit.node.fake_macros import Macros

MACROS = [name for name in vars(Macros) if name.startswith("mirror_")]


@pytest.mark.parametrize("name", MACROS)
def test_a_fake_macro_has_the_arguments_of_the_macro(name: str) -> None:
    signature = inspect.signature(getattr(Macros, name))
    arguments = [argument for argument in signature.parameters.values() if argument.name != "self"]
    optional = {each.name for each in arguments if each.default is not inspect.Parameter.empty}

    assert all(argument.kind is inspect.Parameter.KEYWORD_ONLY for argument in arguments)
    assert arguments_of(f"openmirroring__{name}") == (
        {argument.name for argument in arguments} - optional,
        optional,
    )
