"""What a container may use: memory and cores by its control group, of either version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")

# More than any machine has: what an unlimited group may use.
UNLIMITED = 1 << 60


def memory_left(mount: Path = _MOUNT, own: Path = _OWN) -> int:
    """Bytes that this process's control groups let it take; UNLIMITED where there is no limit.

    Args:
        mount: Where the kernel's cgroup file systems are.
        own: The file that names this process's groups.
    """
    left = UNLIMITED
    for folder in _folders("memory", mount, own):
        limit = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes") or 0
        if limit:
            # Files that the kernel keeps in memory count as used, and make room when asked.
            left = min(left, max(0, limit - max(0, used - _kept_files(folder))))
    return left


def cores(mount: Path = _MOUNT, own: Path = _OWN) -> int:
    """Cores' worth of time that this process's control groups allow, at least 1; UNLIMITED without limit."""
    allowed = UNLIMITED
    for folder in _folders("cpu", mount, own):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        quota = quota or _text(folder / "cpu.cfs_quota_us")
        period = period or _text(folder / "cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal() and int(period):
            allowed = min(allowed, max(1, -(-int(quota) // int(period))))
    return allowed


def _folders(controller: str, mount: Path, own: Path) -> Iterator[Path]:
    """The folders of this process's group and of those above it; a container may see the topmost only."""
    for line in _text(own).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        root = mount / controllers if controllers else mount
        below = root.joinpath(*(part for part in path.split("/") if part not in ("", "..")))
        yield below
        yield from (folder for folder in below.parents if folder.is_relative_to(root))


def _kept_files(folder: Path) -> int:
    found = re.search(r"^(?:total_)?inactive_file (\d+)$", _text(folder / "memory.stat"), re.MULTILINE)
    return int(found[1]) if found else 0


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
