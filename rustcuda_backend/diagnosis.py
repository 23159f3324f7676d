"""What `doctor` says: one line for each thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "passed over", "warning", "missing"]


@dataclass(frozen=True)
class Line:
    """One thing that was looked at.

    Attributes:
        topic: What it belongs to, e.g. `"Rust"`.
        state: `"ok"`: a build uses it; `"note"`: good to know; `"passed over"`: looked at and not used;
            `"warning"`: a build succeeds, but something else will not; `"missing"`: a build fails.
        text: What was found.
        fix: The line that mends it, to be typed or written as it is.
    """

    topic: str
    state: State
    text: str
    fix: str = ""
