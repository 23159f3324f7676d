"""What a build prints: prefix, colours, each message once."""

from __future__ import annotations

import io

import pytest

from rustcuda_backend.errors import RustcudaError
from rustcuda_backend.report import Report, wants_colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "environ", "expected"),
    [
        (True, {}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_when_to_colour(terminal: bool, environ: dict[str, str], expected: bool) -> None:
    assert wants_colour(Terminal() if terminal else io.StringIO(), environ) is expected


def test_every_line_has_the_prefix_and_steps_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.expect(2)
    report.step("one")
    report.step("two")
    report.note("a\nb")
    report.warn("c")
    report.warn("c")
    assert capsys.readouterr().err.splitlines() == [
        "rustcuda: [1/2] one",
        "rustcuda: [2/2] two",
        "rustcuda: a",
        "rustcuda: b",
        "rustcuda: warning: c",
    ]


def test_a_compilers_message_is_printed_once_and_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.once("warning: x\n --> src\n")
    report.once("warning: x\n --> src\n")
    assert capsys.readouterr().err == "warning: x\n --> src\n"


def test_commands_and_what_they_say_are_for_the_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    for verbose in range(3):
        report = Report(verbose)
        report.command(["cargo", "a b"], {"X": "1"})
        report.said("Compiling k")
        report.said("  ")
    assert capsys.readouterr().err.splitlines() == [
        "rustcuda: running: X='1' cargo 'a b'",
        "rustcuda: running: X='1' cargo 'a b'",
        "Compiling k",
    ]


def test_a_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    Report().table(("name", "count"), [["9.0", "5"], ["10.0a", "-"], ["x", "1234567"]])
    assert capsys.readouterr().err.splitlines() == [
        "rustcuda:   name     count",
        "rustcuda:   9.0          5",
        "rustcuda:   10.0a        -",
        "rustcuda:   x      1234567",
    ]


def test_a_stream_that_cannot_say_it_gets_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(buffer, encoding="ascii"))
    Report().note("ü")
    assert buffer.getvalue() == b"rustcuda: \\xfc\n"


def test_an_error_reads_the_same_everywhere() -> None:
    error = RustcudaError("it broke", where="here", hint="do this\nor that")
    assert str(error).splitlines() == [
        "rustcuda: error: it broke",
        "rustcuda:   where: here",
        "rustcuda:   what to do: do this",
        "rustcuda:     or that",
    ]
    assert str(RustcudaError("it broke")) == "rustcuda: error: it broke"
