"""Writes the table of settings in README.md, from the settings themselves.

usage: python tools/settings_table.py [--check]
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from rustcuda_backend.settings import ENVIRONMENT_PREFIX, SETTING_FIELDS
from rustcuda_backend.settings_values import spelled

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN = "<!-- settings: written by tools/settings_table.py -->\n"
END = "<!-- end of settings -->\n"


def table() -> str:
    """The table in Markdown: one row for each setting, with its three spellings."""
    rows = ["| `[tool.rustcuda]` | `-C` | environment | default | meaning |", "|---|---|---|---|---|"]
    for name, field in SETTING_FIELDS.items():
        key = spelled(name)
        variable = ENVIRONMENT_PREFIX + name.upper()
        meaning = field.metadata["help"]
        if choices := field.metadata["choices"]:
            meaning += "; one of " + ", ".join(f"`{choice}`" for choice in choices)
        rows.append(f"| `{key}` | `{key}=…` | `{variable}` | {_default(field)} | {meaning} |")
    return "\n".join(rows) + "\n"


def _default(field: dataclasses.Field[Any]) -> str:
    """A default as pyproject.toml would have it; nothing where there is none."""
    value = field.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int):
        return f"`{value}`" if value >= field.metadata["least"] else ""
    return f'`"{value}"`' if value else ""


def with_table(readme: str) -> str:
    """A README with the table between its two marks as it should be.

    Raises:
        ValueError: A mark is missing.
    """
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{README} lacks the mark {(BEGIN if not begin else END).strip()}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> int:
    """Writes the table, or says whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if the table is stale"
    )
    arguments = parser.parse_args()
    old = README.read_text(encoding="utf-8")
    new = with_table(old)
    if arguments.check:
        return int(new != old)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
