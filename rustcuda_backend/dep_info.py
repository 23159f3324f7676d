"""What an earlier build has read, by the `.d` files that cargo writes beside the libraries it makes.

They name all files of all crates that are named by path: also those of `include_str!` and `#[path]`, of proc
macros, of build scripts, and what a build script has told cargo to watch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rustcuda_backend.filled_folders import is_filled

# Paths that cargo would write relative to a folder of the user's choice are relative to this one, which holds
# nothing, and so are absolute.
ABSOLUTE = {"CARGO_BUILD_DEP_INFO_BASEDIR": os.path.join(os.sep, "no", "such", "folder")}  # noqa: PTH118

# Where cargo puts what it makes with its own profiles; others have folders of their names.
_PROFILE_FOLDERS = {"dev": "debug", "test": "debug", "bench": "release"}

_SPACE = re.compile(r"(?<!\\) ")


def of_build(folder: Path, profile: str, crate: str) -> frozenset[Path]:
    """The files that the last build of a crate has read.

    Args:
        folder: The target directory's part that is for the target of the build.
        profile: cargo's profile.
        crate: The crate's name, of a library or a program.
    """
    made = folder / _PROFILE_FOLDERS.get(profile, profile)
    named = (path for path in made.glob("*.d") if path.stem.removeprefix("lib") == crate)
    return frozenset(path for file in named for path in read(file))


def read(file: Path) -> frozenset[Path]:
    """The files that a `.d` file names, and those in the folders that it names; only what is there.

    Args:
        file: In the form that cargo writes; one that is missing names nothing.
    """
    try:
        lines = os.fsdecode(file.read_bytes()).splitlines()
    except OSError:
        return frozenset()
    # The first word is what was made; spaces in names are escaped, and nothing else.
    words = (word for line in lines for word in _SPACE.split(line)[1:])
    named = (_plain(word.replace("\\ ", " ")) for word in words if word)
    return frozenset(path for name in named if name.is_absolute() for path in _files(name))


def without(paths: Iterable[Path], folders: Iterable[Path]) -> frozenset[Path]:
    """The files that are in none of the folders."""
    left_out = [folder.resolve() for folder in folders]
    return frozenset(path for path in paths if not any(path.is_relative_to(folder) for folder in left_out))


def _plain(name: str) -> Path:
    """A path without `..`, which leads on from where a link leads."""
    return Path(os.path.realpath(name) if ".." in Path(name).parts else name)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        if path.is_file():
            yield path
        return
    for place, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name != ".git" and not is_filled(Path(place, name))]
        yield from (each for name in names if (each := Path(place, name)).is_file())
