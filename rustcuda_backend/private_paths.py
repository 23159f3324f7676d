"""Paths of a person's folders, or of one machine's build, in the files of a wheel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_REST = rb"[^\0-\x20\"'<>|`\x7f]{1,300}"

# What a build of ours generates has no reason to name any such folder. What compilers are told to write
# instead (`/rustc/…`, relative paths) is none of these.
_FOLDERS = (
    rb"(/(?:home|Users|root|tmp|var/tmp|var/folders|private|builds?|work|workspaces?|github|__w|mnt|media)"
    rb"/" + _REST + rb"|[A-Za-z]:[\\/]{1,2}(?:Users|Temp|a|work|builds?)[\\/]{1,2}" + _REST + rb")"
)
# In text, what goes before may make it part of a relative path or of an address. In a fatbin strings follow
# each other without anything between them.
_IN_GENERATED_TEXT = re.compile(rb"(?:(?<![\w.:/-])|(?<=file://))" + _FOLDERS)
_IN_FATBIN = re.compile(_FOLDERS)

# What somebody wrote may well speak of `/tmp/x` or `/mnt/data`; only a person's home and the folders that
# front ends make for a build are never meant for others.
_HOME_OR_BUILD = re.compile(
    rb"[\\/](?:(?:home|Users)[\\/]{1,2}(?P<account>[\w\x80-\xff][\w.\x80-\xff-]*)[\\/]"
    rb"|(?:tmp|T)/(?:pip-[\w-]+|build-env-\w+|rustcuda-build-\w+|cibw-run-\w+|tmp[a-z0-9_]{8}|\.tmp\w{6})/)"
    + _REST
)
# Of the path before what the pattern finds: a drive, or where macOS keeps temporary folders.
_BEGINNING = re.compile(rb"(?:[A-Za-z]:[\\/]?|/(?:private/)?var(?:/folders/\w+/\w+)?|/private)\Z")
# Before a path that begins there, and not in the middle of a longer one or of an address.
_BEFORE = re.compile(rb"(?:file://|-[IL]|[^\w.:/\\-]|\A)\Z")
# Long enough for all of them.
_BEFORE_BYTES = 80

# Accounts that are nobody's: those of examples, of build services and of images for containers.
_NOBODY = frozenset(
    b"user username user1 me you your yourname your-name your_name name myname myuser someone somebody "
    b"alice bob jane john jdoe johndoe janedoe foo bar example test tester dev developer "
    b"runner runneradmin conda mambauser vsts circleci travis jenkins gitlab-runner ci build builder worker "
    b"ubuntu debian ec2-user vagrant docker app appuser linuxbrew nixbld admin administrator "
    b"containeradministrator vssadministrator public shared default".split()
)
# In pages and scripts `/home/…` is a place on a site.
_OF_SITES = (".html", ".htm", ".js", ".mjs", ".css", ".svg")


@dataclass(frozen=True)
class PrivatePath:
    """A path that tells of a person or of the machine of a build.

    Attributes:
        path: As it stands in the file.
        certain: Whether a tool has written it; otherwise somebody may have, as an example.
    """

    path: str
    certain: bool


def of_generated(name: str, data: bytes) -> list[PrivatePath]:
    """Those in a file that a build of ours has generated."""
    pattern = _IN_GENERATED_TEXT if name.endswith((".py", ".pyi")) else _IN_FATBIN
    return [PrivatePath(_text(path), certain=True) for path in dict.fromkeys(pattern.findall(data))]


def of_others(name: str, data: bytes) -> list[PrivatePath]:
    """Those in any other file of a wheel."""
    if PurePosixPath(name).suffix.lower() in _OF_SITES:
        return []
    return list(dict.fromkeys(_homes_and_builds(data)))


def _homes_and_builds(data: bytes) -> Iterator[PrivatePath]:
    is_binary = b"\0" in data
    for found in _HOME_OR_BUILD.finditer(data):
        account = found["account"]
        if account and account.lower() in _NOBODY:
            continue
        before = data[max(0, found.start() - _BEFORE_BYTES) : found.start()]
        beginning = _BEGINNING.search(before)
        if beginning:
            before = before[: beginning.start()]
        if _BEFORE.search(before):
            path = (beginning[0] if beginning else b"") + found[0]
            yield PrivatePath(_text(path), is_binary or not account or before.endswith(b"file://"))


def _text(path: bytes) -> str:
    return path.decode("utf-8", "replace")
