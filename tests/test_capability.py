"""Capabilities: spellings, order, families, cfg values."""

from __future__ import annotations

import pytest

from rustcuda_backend.capability import KNOWN, Capability, all_cfg_values, parse_list
from rustcuda_backend.errors import CapabilityError


def names(text: str) -> str:
    return " ".join(str(capability) for capability in parse_list(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9.0", "9.0"),
        ("90", "9.0"),
        ("sm_90", "9.0"),
        ("SM90a", "9.0a"),
        ("100f", "10.0f"),
        ("9.0A+ptx", "9.0a+PTX"),
        ("8.0 +PTX", "8.0+PTX"),
        ("12.0;8.0", "8.0 12.0"),
        ("10.0 9.0 7.5", "7.5 9.0 10.0"),
        (" ;; 8.0 ,, 9.0+PTX\n10.0;", "8.0 9.0+PTX 10.0"),
        ("9.0 9.0+PTX 90", "9.0+PTX"),
        ("9.0a 9.0", "9.0 9.0a"),
        ("Hopper", "9.0+PTX"),
        ("ampere", "8.0 8.6+PTX"),
        ("Ampere+Tegra", "8.7"),
        ("Ada+PTX", "8.9+PTX"),
        ("Blackwell", "10.0 10.3 12.0 12.1+PTX"),
    ],
)
def test_every_spelling_is_read(text: str, expected: str) -> None:
    assert names(text) == expected


def test_a_list_of_texts_is_one_list() -> None:
    assert parse_list(["9.0", "8.0 8.6"]) == parse_list("8.0;8.6;9.0")


def test_every_known_capability_reads_back_from_each_of_its_names() -> None:
    for major, minor in KNOWN:
        for capability in (Capability(major, minor), Capability(major, minor, ptx=True)):
            assert parse_list(str(capability)) == (capability,)
            assert parse_list(capability.sm)[0].base == (major, minor)


@pytest.mark.parametrize(
    "word",
    [
        "9",
        "9.1",
        "6.0",
        "5.2+PTX",
        "8.0a",
        "9.0f",
        "99999.0",
        "abc",
        "9.0+PTXX",
        "sm_",
        "+PTX",
        "9.0b",
        "native",
    ],
)
def test_a_token_that_is_none_is_named_with_those_that_are(word: str) -> None:
    with pytest.raises(CapabilityError) as raised:
        parse_list(f"8.0;{word}", where="the place")
    message = str(raised.value)
    assert f"'{word}' is not a capability" in message
    assert "the place" in message
    assert ("native" if word == "native" else "7.0 7.2 7.5 8.0") in message


def test_a_torch_name_of_too_old_gpus_names_the_capability_and_the_name() -> None:
    with pytest.raises(CapabilityError, match=r"'3.5\+PTX' is not a capability") as raised:
        parse_list("Kepler")
    assert raised.value.where == "Kepler"


@pytest.mark.parametrize("text", ["", " ; ,\n"])
def test_an_empty_list_is_an_error(text: str) -> None:
    with pytest.raises(CapabilityError, match="empty"):
        parse_list(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7.0", ["70"]),
        ("8.6", ["70", "72", "75", "80", "86"]),
        ("9.0", ["70", "72", "75", "80", "86", "87", "88", "89", "90"]),
        ("9.0a", ["70", "72", "75", "80", "86", "87", "88", "89", "90", "90a"]),
    ],
)
def test_cfg_values_are_cumulative(text: str, expected: list[str]) -> None:
    assert list(parse_list(text)[0].cfg_values()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0f", {"100f"}),
        ("10.0a", {"100a", "100f"}),
        ("10.3a", {"103a", "103f", "100f"}),
        ("10.3f", {"103f", "100f"}),
        ("10.1a", {"101a", "101f"}),
        ("11.0f", {"110f"}),
        ("12.1a", {"121a", "121f", "120f"}),
        ("12.0", set()),
    ],
)
def test_suffixed_cfg_values_are_those_of_the_family(text: str, expected: set[str]) -> None:
    assert {value for value in parse_list(text)[0].cfg_values() if value[-1] in "af"} == expected


def test_all_cfg_values_hold_those_of_every_pass() -> None:
    every = set(all_cfg_values())
    for value in every:
        assert set(parse_list(value)[0].cfg_values()) <= every
    assert {"70", "90a", "100f", "121a"} <= every
    assert not {"80a", "90f"} & every
