"""docs/commands.md shows what the commands print."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from projects import REPOSITORY
from wheels_by_hand import module_files, wheel

from rustcuda_backend.cli import COMMANDS, main

PAGE = REPOSITORY / "docs" / "commands.md"


@pytest.fixture
def generator(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    spec = importlib.util.spec_from_file_location("command_help", REPOSITORY / "tools/command_help.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_help_is_fresh(generator):
    page = PAGE.read_text(encoding="utf-8")
    assert generator.with_help(page) == page, "run tools/command_help.py"


def test_a_stale_page_and_one_without_a_command(generator, monkeypatch, tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    stale = tmp_path / "commands.md"
    stale.write_text(page.replace("--json", "--jsno"), encoding="utf-8")
    monkeypatch.setattr(generator, "PAGE", stale)
    monkeypatch.setattr(sys, "argv", ["command_help.py", "--check"])
    assert generator.main() == 1
    with pytest.raises(ValueError, match="check --help"):
        generator.with_help(page.replace("rustcuda_backend check --help", ""))


def test_every_command_has_a_section_and_an_example():
    page = PAGE.read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert set(sections) == {command.NAME for command in COMMANDS}
    for name, text in sections.items():
        shown = re.findall(rf"^\$ python -m rustcuda_backend {name}\b(?! --help)", text, re.MULTILINE)
        assert shown or name == "init"


def test_output_has_the_shape_that_the_page_shows(tmp_path, tools, capsys):
    page = PAGE.read_text(encoding="utf-8").splitlines()
    path = wheel(tmp_path / "pkg-1.whl", module_files(tools, "8.0;9.0a;12.0+PTX"))
    assert main(["inspect", str(path)]) == 0
    headers = [line for line in capsys.readouterr().out.splitlines() if "capability" in line]
    for header in headers:
        assert any(line.split() == header.split() for line in page)
    assert main(["check", str(path)]) == 0
    said = capsys.readouterr().out.strip()
    shape = re.compile(re.sub(r"\d+ (module|kernel|image)s?", r"\\d+ \1s?", said.partition(": ")[2]))
    assert any(shape.search(line) for line in page)
