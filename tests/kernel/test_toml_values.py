"""TOML that may be hostile: the same data as Python's own parser has, or a plain reason; soon, and in little memory."""

from __future__ import annotations

import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.limits import TOML_BYTES, TOML_DEPTH
from handrail.kernel.toml_values import parse_toml

PARTS = st.sampled_from(
    [
        "a",
        "b.c",
        '"d.e"',
        "'f'",
        " = ",
        "1",
        "-2.5",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\n",
        "#",
        '"',
        "'",
        '"""',
        "'''",
        "\\",
        ".",
    ]
)


def why(text: str | bytes) -> str:
    began = time.monotonic()
    with pytest.raises(ValueError) as refused:
        parse_toml(text)
    assert time.monotonic() - began < 5
    assert not isinstance(refused.value, tomllib.TOMLDecodeError)
    return str(refused.value)


def test_what_is_fine_is_read() -> None:
    text = 'a.b.c = 1\n[t]\nx = ["y", {z = 2}]\n' + "".join(f"k{i} = [1.5, 2.5]\n" for i in range(100))
    assert parse_toml(text) == tomllib.loads(text) == parse_toml(text.encode())
    assert parse_toml(f"n = {2**63 - 1}\nm = -{2**63 - 1}") == {"n": 2**63 - 1, "m": 1 - 2**63}


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5000 + "]" * 5000,
        "a = " + "{b=" * 5000 + "1" + "}" * 5000,
        "a = " + "[" * (TOML_DEPTH + 1) + "]" * (TOML_DEPTH + 1),
        ".".join("a" * 50_000) + " = 1",
        "[" + ".".join("a" * 100_000) + "]",
        "[[" + ".".join(["'a'"] * 100_000) + "]]",
        ".".join(['"a.b"'] * (TOML_DEPTH + 2)) + " = 1",
        "x = { " + " . ".join("a" * 10_000) + " = 1 }",
        "a = " + f"{{{'.'.join('k' * 20)} = " * 20 + "1" + "}" * 20,
        's = """' + '"" \\""" ' * 40 + '""""" # """\na = ' + "[" * 900 + "]" * 900,
        "s = '''" + "'' ' " * 40 + "'''''\na = " + "[" * 900 + "]" * 900,
        's = "' + '\\" # [' * 40 + '"\na = ' + "[" * 900 + "]" * 900,
        "# '\n" * 40 + "a = " + "[" * 900 + "]" * 900,
    ],
    ids=lambda text: text[:12],
)
def test_depth_is_bounded_however_it_is_written(text: str) -> None:
    assert why(text) == f"it is nested more than {TOML_DEPTH} levels deep"


@pytest.mark.parametrize("number", ["1" * 5000, "-" + "1" * 5000, "1_" * 5000 + "1", "0x" + "f" * 5000, str(2**63)])
def test_digits_are_bounded(number: str) -> None:
    assert why(f"a = [{{b = {number}}}]") == "a number in it is out of range"


def test_depth_within_strings_and_comments_is_none() -> None:
    deep = "[" * 100 + "." * 100 + "{" * 100
    text = f'a = "{deep}"\nb = \'{deep}\'\nc = \'\'\'{deep}\n\'{deep}\'\'\'\nd = """{deep}\n\\"""{deep}"""\n# {deep}\n'
    assert parse_toml(text) == tomllib.loads(text)


def test_size_and_text_are_bounded() -> None:
    assert parse_toml("#" * TOML_BYTES) == {}
    assert why("#" * (TOML_BYTES + 1)) == f"it is larger than {TOML_BYTES} bytes"
    assert why(b"a = '\xff'").startswith("it is not valid TOML: ")
    assert why("a =").startswith("it is not valid TOML: ")


@pytest.mark.parametrize("line", ["a = [" + "1," * 100_000 + "]", "[[a]]\n" * 30_000, 'a = "' + "\\n" * 500_000 + '"'])
def test_a_fifth_of_the_worst_takes_less_than_a_second_or_two(line: str) -> None:
    began = time.monotonic()
    assert parse_toml(line)
    assert time.monotonic() - began < 10  # half of one here, on a machine that does nothing else


@given(st.lists(PARTS, max_size=60).map("".join))
def test_it_says_what_pythons_parser_says(text: str) -> None:
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assert why(text)
    else:
        assert parse_toml(text) == expected
