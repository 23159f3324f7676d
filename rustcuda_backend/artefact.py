"""The setting `kernels`: a file of the project in which cuda-oxide embedded kernels that it had compiled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import cache, containers, elf_reader, oxart, ptx
from rustcuda_backend.capability import Capability, parse_list
from rustcuda_backend.containers import Piece
from rustcuda_backend.errors import CapabilityError, CompileError, FormatError, SettingsError
from rustcuda_backend.oxart import Bundle
from rustcuda_backend.settings import Settings

# Behind it stands the package whose kernels are meant.
_SELECTS = "#"


@dataclass(frozen=True)
class Embedded:
    """PTX that cuda-oxide embedded for one package.

    Attributes:
        path: The file that it is in.
        package: The cargo package.
        texts: The PTX, each with the capability that it was compiled for.
        where: The place of the setting.
    """

    path: Path
    package: str
    texts: tuple[tuple[Capability, str], ...]
    where: str

    def text_for(self, capability: Capability) -> str:
        """The PTX for the newest GPU that is not newer than a capability.

        Raises:
            CapabilityError: All of it is for other GPUs.
        """
        fitting = [(known, text) for known, text in self.texts if _serves(known, capability)]
        if not fitting:
            known = ", ".join(known.name for known, _ in self.texts)
            raise CapabilityError(
                f"the PTX in this file is for {known}, and cannot be assembled for {capability.name}",
                where=str(self.path),
                hint="build for its capability or later ones of the same kind, or build the file anew for "
                f"{capability.name}",
            )
        return max(fitting, key=lambda found: (found[0].base, found[0].suffix))[1]


def artefact_path(project: Path, settings: Settings) -> Path:
    """The file that the setting `kernels` names.

    Raises:
        SettingsError: It is outside the project, or there is none.
    """
    name, _ = _selected(settings)
    path = (project / name).resolve()
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


def read_artefact(project: Path, settings: Settings) -> Embedded:
    """The PTX in the file that the setting `kernels` names.

    Raises:
        CompileError: What is embedded is no PTX.
        FormatError: There is nothing of cuda-oxide's in the file, or it is damaged.
        SettingsError: There is no such file, or it does not say which of several packages is meant.
    """
    path = artefact_path(project, settings)
    where = settings.where("kernels")
    package, bundles = _of_one_package(_bundles(path), settings)
    texts = []
    for bundle in bundles:
        for payload in bundle.payloads:
            if payload.kind != oxart.PTX:
                raise CompileError(
                    f"cuda-oxide embedded {payload.kind} for the package '{package}', and no PTX",
                    where=str(path),
                    hint="build it with llc, opt, llvm-link and libdevice at hand, so that PTX is embedded",
                )
            text = payload.data.rstrip(b"\0").decode("utf-8", "replace")
            texts.append((_target(text, f"{path}, bundle {package}"), text))
    return Embedded(path, package, tuple(texts), where)


def strip(path: Path) -> bool:
    """Takes out of an ELF file what cuda-oxide embedded; whether there was anything.

    The bytes become zeros, which is what `objcopy --remove-section` makes of a section that is loaded:
    nothing moves, the library's own symbols into the section stay valid, and readers take a section of
    zeros for one without bundles.
    """
    data = path.read_bytes()
    try:
        header = elf_reader.read_header(data, "library")
        section = elf_reader.read(data, header, "library").section(oxart.SECTION)
    except FormatError:
        return False
    if section is None or not any(data[section.span]):
        return False
    start, stop = section.span.start, section.span.stop
    mode = path.stat().st_mode & 0o777
    cache.write_atomically(path, data[:start] + bytes(stop - start) + data[stop:])
    path.chmod(mode)
    return True


def _selected(settings: Settings) -> tuple[str, str]:
    name, _, package = settings.kernels.partition(_SELECTS)
    return name, package


def _bundles(path: Path) -> list[Bundle]:
    pieces = [piece for piece in containers.pieces(path) if piece.kind == "oxart"]
    bundles = [bundle for piece in pieces for bundle in _of_piece(piece, path)]
    if not bundles:
        raise FormatError(
            "cuda-oxide has embedded nothing in this file",
            where=str(path),
            hint="name one that it has built and that was not stripped; `inspect` shows what is in a file",
        )
    return bundles


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
            hint=f"its packages are {', '.join(names)}; name one, e.g. kernels = "
            f'"{file}{_SELECTS}{names[0]}", in [[tool.rustcuda.crates]] where you want several',
        )
    return wanted, [bundle for bundle in bundles if bundle.name == wanted]


def _target(text: str, where: str) -> Capability:
    """What PTX is for, by its own word."""
    _, target = ptx.header(text)
    found = parse_list(target, where=where)
    if len(found) != 1:
        raise FormatError(f"the PTX is for '{target}', which is no capability", where=where)
    return found[0]


def _serves(known: Capability, wanted: Capability) -> bool:
    """Whether PTX for one capability can be assembled for another."""
    if known.suffix == "a":
        return (known.base, known.suffix) == (wanted.base, wanted.suffix)
    if known.suffix == "f":
        same_family = known.base[0] == wanted.base[0] and known.base <= wanted.base
        return same_family and wanted.suffix != ""
    return known.base <= wanted.base
