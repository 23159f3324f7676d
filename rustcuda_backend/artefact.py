"""The setting `kernels`: a file of the project in which cuda-oxide embedded kernels that it had compiled."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import containers, oxart, ptx, ptx_outline
from rustcuda_backend.capability import Capability, family, parse_list
from rustcuda_backend.containers import Piece
from rustcuda_backend.errors import CapabilityError, CompileError, FormatError, SettingsError
from rustcuda_backend.oxart import Bundle
from rustcuda_backend.settings import CRATES, Settings

# The file, and behind it the package whose kernels are meant.
_SELECTED = re.compile(r"(?P<file>.*)#(?P<package>[\w-]+)", re.DOTALL)
# From what serves most to what serves one alone.
_SUFFIXES = ("", "f", "a")


@dataclass(frozen=True)
class EmbeddedPtx:
    """PTX as cuda-oxide embedded it.

    Attributes:
        capability: What it was compiled for.
        text: The PTX.
        options: What assembling it must keep to, see `Bundle`.
    """

    capability: Capability
    text: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Embedded:
    """What cuda-oxide embedded for one package.

    Attributes:
        path: The file that it is in.
        package: The cargo package.
        found: The PTX, all for different capabilities.
        where: The place of the setting.
        warnings: Where its bundles list other kernels than their PTX has.
    """

    path: Path
    package: str
    found: tuple[EmbeddedPtx, ...]
    where: str
    warnings: tuple[str, ...] = ()

    def best_for(self, capability: Capability) -> EmbeddedPtx:
        """The PTX for the newest GPU that is not newer than a capability, and of that the most specific.

        Raises:
            CapabilityError: All of it is for other GPUs.
        """
        fitting = [each for each in self.found if _serves(each.capability, capability)]
        if not fitting:
            known = ", ".join(each.capability.name for each in self.found)
            raise CapabilityError(
                f"the PTX in this file is for {known}, and cannot be assembled for {capability.name}",
                where=str(self.path),
                hint=f"leave {capability.name} out of the capabilities, or build the file anew for it or for "
                "an older GPU (cargo oxide build --arch)",
            )
        return max(fitting, key=lambda each: _order(each.capability))


def artefact_path(project: Path, settings: Settings) -> Path:
    """The file that the setting `kernels` names, without links.

    Raises:
        SettingsError: It is outside the project, or there is none.
    """
    name, _ = _selected(settings)
    # Path.resolve raises where links lead in a circle.
    path = Path(os.path.realpath(project / name))
    where = settings.where("kernels")
    if not path.is_relative_to(project.resolve()):
        raise SettingsError(
            f"the file of kernels '{name}' is outside the project", where=where, hint="move it inside"
        )
    if not path.is_file():
        raise SettingsError(
            f"there is no file of kernels '{name}'",
            where=where,
            hint="name a library, program or rlib that cuda-oxide has built, relative to pyproject.toml",
        )
    return path


def artefact_source(project: Path, settings: Settings) -> Path:
    """The same file relative to the project, under the name that the setting gives it.

    Raises:
        SettingsError: See `artefact_path`.
    """
    path = artefact_path(project, settings)
    named = Path(os.path.relpath(project / _selected(settings)[0], project))
    # Through a link that leads out of the project and back in.
    return path.relative_to(project.resolve()) if ".." in named.parts else named


def read_artefact(project: Path, settings: Settings) -> Embedded:
    """The PTX in the file that the setting `kernels` names.

    Raises:
        CompileError: What is embedded is no PTX.
        FormatError: There is nothing of cuda-oxide's in the file, or it is damaged, or it says of PTX that it
            is for another GPU than the PTX itself.
        SettingsError: There is no such file, or it is not clear which of its kernels are meant.
    """
    path = artefact_path(project, settings)
    package, bundles = _of_one_package(read_bundles(path), settings)
    # Linkers may have taken one object file twice.
    found = dict.fromkeys(each for bundle in bundles for each in _ptx_of(bundle, path))
    if not found:
        raise _without_ptx(bundles, path)
    capabilities = [each.capability for each in found]
    if twice := next((each for each in capabilities if capabilities.count(each) > 1), None):
        raise SettingsError(
            f"the package '{package}' has several bundles of PTX for {twice.name} in this file",
            where=str(path),
            hint="name a file with one of them, e.g. the rlib of the library or the program alone",
        )
    warnings = dict.fromkeys(warning for bundle in bundles for warning in _warnings(bundle))
    return Embedded(path, package, tuple(found), settings.where("kernels"), tuple(warnings))


def read_bundles(path: Path) -> list[Bundle]:
    """All that cuda-oxide embedded in a file.

    Raises:
        FormatError: That is nothing, or it is damaged.
    """
    pieces = [piece for piece in containers.pieces(path) if piece.kind == "oxart"]
    bundles = [bundle for piece in pieces for bundle in _of_piece(piece, path)]
    if not bundles:
        raise FormatError(
            "cuda-oxide has embedded nothing in this file",
            where=str(path),
            hint="name one that it has built and that was not stripped; `inspect` shows what is in a file",
        )
    return bundles


def _selected(settings: Settings) -> tuple[str, str]:
    match = _SELECTED.fullmatch(settings.kernels)
    return (match["file"], match["package"]) if match else (settings.kernels, "")


def _of_piece(piece: Piece, path: Path) -> tuple[Bundle, ...]:
    try:
        return oxart.read(piece.data)
    except FormatError as error:
        error.where = ", ".join(place for place in (str(path), piece.place, error.where) if place)
        raise


def _of_one_package(bundles: list[Bundle], settings: Settings) -> tuple[str, list[Bundle]]:
    file, wanted = _selected(settings)
    names = list(dict.fromkeys(bundle.name for bundle in bundles))
    if not wanted and len(names) == 1:
        wanted = names[0]
    if wanted not in names:
        raise SettingsError(
            f"'{file}' has no kernels of the package '{wanted}'"
            if wanted
            else f"'{file}' has kernels of several packages",
            where=settings.where("kernels"),
            hint=f'its packages are {", ".join(names)}; name one, e.g. kernels = "{file}#{names[0]}",\n'
            f"and where you want several give each a table {CRATES}",
        )
    return wanted, [bundle for bundle in bundles if bundle.name == wanted]


def _without_ptx(bundles: list[Bundle], path: Path) -> CompileError:
    found = dict.fromkeys(payload.kind for bundle in bundles for payload in bundle.payloads)
    kinds = " and ".join(found) or "no code"
    return CompileError(
        f"cuda-oxide embedded {kinds} for the package '{bundles[0].name}', and no PTX",
        where=str(path),
        hint="build it with llc, opt, llvm-link and libdevice at hand, so that PTX is embedded",
    )


def _ptx_of(bundle: Bundle, path: Path) -> list[EmbeddedPtx]:
    where = f"{path}, bundle {bundle.name}"
    return [EmbeddedPtx(_target(text, bundle, where), text, bundle.options) for text in _texts(bundle)]


def _texts(bundle: Bundle) -> list[str]:
    texts = [payload.data for payload in bundle.payloads if payload.kind == oxart.PTX]
    return [data.rstrip(b"\0").decode("utf-8", "replace") for data in texts]


def _target(text: str, bundle: Bundle, where: str) -> Capability:
    """What PTX is for, by its own word, which its bundle must not contradict."""
    _, target = ptx.header(text, where)
    (found,) = parse_list(target, where=where)
    # cuda-oxide takes both spellings of a GPU.
    if bundle.target.replace("compute_", "sm_") != target:
        raise FormatError(
            f"the bundle is for {bundle.target} by its own word, but its PTX is for {target}",
            where=where,
            hint="build the file anew",
        )
    return found


def _warnings(bundle: Bundle) -> Iterator[str]:
    """Where a bundle lists other kernels than its PTX has; one that lists none does not know them."""
    listed = {entry.name for entry in bundle.entries if entry.kind == oxart.KERNEL}
    texts = _texts(bundle)
    if not listed or not texts:
        return
    there = {name for text in texts for name in ptx_outline.kernels(text)}
    where = f"the PTX of the package '{bundle.name}' for {bundle.target}"
    if listed - there:
        yield f"{where} lacks kernels that its bundle lists: {', '.join(sorted(listed - there))}"
    if there - listed:
        yield f"{where} has kernels that its bundle does not list: {', '.join(sorted(there - listed))}"


def _order(capability: Capability) -> tuple[tuple[int, int], int]:
    return capability.base, _SUFFIXES.index(capability.suffix)


def _serves(known: Capability, wanted: Capability) -> bool:
    """Whether PTX for one capability can be assembled for another."""
    if known.suffix == "a":
        return (known.base, known.suffix) == (wanted.base, wanted.suffix)
    if known.suffix == "f":
        return wanted.suffix != "" and known.base in family(wanted.base)
    return known.base <= wanted.base
