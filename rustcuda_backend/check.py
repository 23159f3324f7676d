"""Holds the kernels in a wheel against the loader that launches them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rustcuda_backend import (
    containers,
    cubin_resources,
    driver_floor,
    fatbin,
    oxart,
    private_paths,
    ptx_outline,
)
from rustcuda_backend.errors import FormatError
from rustcuda_backend.generated import MARK
from rustcuda_backend.loader import tables
from rustcuda_backend.loader.tables import LoaderTables
from rustcuda_backend.settings import CONTAINERS
from rustcuda_backend.wheel_archive import Finding, check_record, read_members


@dataclass(frozen=True)
class Outcome:
    """What a check has found.

    Attributes:
        findings: What is wrong.
        notes: What may be meant: differences between capabilities that the loader knows, and paths that
            may stand for an example.
        modules, kernels, images: How many there are.
    """

    findings: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    modules: int
    kernels: int
    images: int


def check_wheel(path: Path) -> Outcome:
    """Checks one wheel: archive, RECORD, every generated loader and the kernels beside it.

    Raises:
        FormatError: It is no archive, or cannot be read.
    """
    files, findings = read_members(path)
    findings += check_record(files)
    loaders = [name for name, data in files.items() if name.endswith(".py") and data.startswith(MARK)]
    if not loaders:
        findings.append(
            Finding("", "the wheel has no generated loader, so there is nothing to hold kernels against")
        )
    notes: list[Finding] = []
    kernels = images = 0
    claimed = set()
    for loader in loaders:
        try:
            said = tables.read(files[loader].decode("utf-8"))
        except (FormatError, UnicodeDecodeError) as error:
            findings.append(Finding(loader, error.what if isinstance(error, FormatError) else f"{error}"))
            # Without it nobody knows what the file beside it is.
            claimed |= {str(PurePosixPath(loader).with_suffix(suffix)) for suffix in CONTAINERS.values()}
            continue
        file = str(PurePosixPath(loader).with_suffix("")) + said.suffix
        claimed.add(file)
        findings += _check_module(loader, file, said, files)
        notes += [
            Finding(
                loader,
                f"kernel '{kernel.name}' is left out for {', '.join(kernel.lacking)}, as the loader says",
            )
            for kernel in said.kernels
            if kernel.lacking
        ]
        kernels += len(said.kernels)
        images += sum(2 if image.capability.ptx else 1 for image in said.images)
    findings += _strays(files, claimed)
    findings += _embedded(files)
    for finding, certain in _private_paths(files, {*claimed, *loaders, *(f"{each}i" for each in loaders)}):
        (findings if certain else notes).append(finding)
    return Outcome(tuple(dict.fromkeys(findings)), tuple(notes), len(loaders), kernels, images)


def _check_module(
    loader: str, file: str, said: LoaderTables, files: Mapping[str, bytes]
) -> Iterator[Finding]:
    if file not in files:
        yield Finding(loader, f"the file with its kernels, {file}, is not in the wheel")
        return
    data = files[file][said.offset : said.offset + said.size] if said.offset else files[file]
    if len(data) != said.size:
        yield Finding(file, f"the fatbin has {len(data)} bytes, but {said.size} according to the loader")
    found = hashlib.sha256(data).hexdigest()
    if found != said.sha256:
        yield Finding(file, f"the fatbin's SHA-256 is {found}, but {said.sha256} according to the loader")
    try:
        images = fatbin.read(data, every_kind=True).images
    except FormatError as error:
        yield Finding(file, f"{error.what} ({error.where})" if error.where else error.what)
        return
    yield from _check_images(file, said, images)
    for image in images:
        if image.kind == "sass" and not image.compressed:
            yield from _check_cubin(file, said, image)
        if image.kind == "ptx" and not image.compressed:
            yield from _check_ptx(file, said, image)


def _check_images(file: str, said: LoaderTables, images: Sequence[fatbin.Image]) -> Iterator[Finding]:
    """Images are those that the loader lists, each once, and no others."""
    for image in images:
        kind = {"sass": "SASS", "ptx": "PTX"}.get(image.kind, f"code of the kind {image.number}")
        if image.compressed:
            yield Finding(
                file, f"the {kind} for {image.capability.name} is compressed, so it cannot be checked"
            )
        if image.kind == "other":
            yield Finding(file, f"there is {kind} for {image.capability.name}")
    wanted = {
        "sass": Counter(image.capability.name for image in said.images),
        "ptx": Counter(image.capability.name for image in said.images if image.capability.ptx),
    }
    for kind, name in (("sass", "SASS"), ("ptx", "PTX")):
        there = Counter(image.capability.name for image in images if image.kind == kind)
        for capability in there - wanted[kind]:
            stray = "stray PTX" if kind == "ptx" else "SASS"
            yield Finding(file, f"there is {stray} for {capability}, which the loader does not list")
        for capability in wanted[kind] - there:
            yield Finding(file, f"there is no {name} for {capability}, which the loader lists")


def _check_cubin(file: str, said: LoaderTables, image: fatbin.Image) -> Iterator[Finding]:
    name = image.capability.name
    try:
        kernels = {kernel.name: kernel for kernel in cubin_resources.read_kernels(image.data)}
        toolkit = cubin_resources.read_toolkit(image.data)
    except FormatError as error:
        yield Finding(file, f"the SASS for {name}: {error.what}")
        return
    yield from _check_entries(file, f"SASS for {name}", name, set(kernels), said)
    for launched in said.kernels:
        found = kernels.get(launched.name)
        if found and found.parameters is not None and found.parameters != launched.abi_bytes:
            yield Finding(
                file,
                f"the SASS for {name}: kernel '{launched.name}' takes parameters of "
                f"{_sizes(found.parameters)} bytes, but the loader passes {_sizes(launched.abi_bytes)}",
            )
    floor = driver_floor.of_sass(image.capability, toolkit.cuda) if toolkit else None
    promised = [each.branch for each in said.images if each.capability.name == name]
    if toolkit and floor and promised and floor.branch > min(promised):
        written = f"{toolkit.cuda[0]}.{toolkit.cuda[1]}"
        yield Finding(
            file,
            f"the SASS for {name} was written by CUDA {written} and needs driver {floor.branch}, "
            f"but {min(promised)} according to the loader",
        )


def _check_ptx(file: str, said: LoaderTables, image: fatbin.Image) -> Iterator[Finding]:
    name = image.capability.name
    try:
        kernels = set(ptx_outline.read(image.data).kernels)
    except FormatError as error:
        yield Finding(file, f"the PTX for {name}: {error.what}")
        return
    yield from _check_entries(file, f"PTX for {name}", name, kernels, said)


def _check_entries(
    file: str, image: str, capability: str, found: set[str], said: LoaderTables
) -> Iterator[Finding]:
    """An image has the kernels of all others, but for those that the loader knows to be left out."""
    wanted = {kernel.name for kernel in said.kernels if capability not in kernel.lacking}
    for name in sorted(wanted - found):
        yield Finding(file, f"the {image} lacks the kernel '{name}', and the loader does not know it")
    left_out = {kernel.name for kernel in said.kernels} - wanted
    for name in sorted(found - wanted):
        says = "says is left out" if name in left_out else "does not know"
        yield Finding(file, f"the {image} has the kernel '{name}', which the loader {says}")


def _sizes(sizes: Sequence[int]) -> str:
    return " ".join(str(size) for size in sizes) or "no"


def _strays(files: Mapping[str, bytes], claimed: set[str]) -> Iterator[Finding]:
    """Device code outside the files that a loader loads; a host's libraries have their own."""
    for name, data in files.items():
        kind = containers.device_file(name, data)
        if name not in claimed and kind:
            yield Finding(name, f"stray {kind}: no loader in the wheel loads it")


def _embedded(files: Mapping[str, bytes]) -> Iterator[Finding]:
    """What cuda-oxide has left in a library, and is no machine code."""
    for name, data in files.items():
        try:
            bundles = containers.bundles(data)
        except FormatError as error:
            yield Finding(name, f"what cuda-oxide has embedded in it cannot be read: {error.what}")
            continue
        code = [(payload.kind, each) for each in bundles for payload in each.payloads]
        kinds = dict.fromkeys(kind for kind, _ in code if kind != oxart.CUBIN)
        packages = dict.fromkeys(bundle.name for kind, bundle in code if kind != oxart.CUBIN)
        if kinds:
            found = f"{' and '.join(kinds)} that cuda-oxide embedded for {' and '.join(packages)}"
            yield Finding(
                name,
                f"it keeps {found}, which is compiled on the user's machine when the library loads it; "
                "to strip it, name the library in [tool.rustcuda] kernels, "
                "or run objcopy --remove-section=.oxart on it before it is packed",
            )


# So many paths tell enough; debug information has hundreds.
_PATHS_SHOWN = 3


def _private_paths(files: Mapping[str, bytes], generated: set[str]) -> Iterator[tuple[Finding, bool]]:
    """Findings, and whether each is certain."""
    for name in sorted(files):
        is_ours = name in generated
        look = private_paths.of_generated if is_ours else private_paths.of_others
        found = look(name, files[name])
        for certain in (True, False):
            paths = [each.path for each in found if each.certain == certain]
            shown = paths if is_ours else paths[:_PATHS_SHOWN]
            for number, path in enumerate(shown, 1):
                more = f" (and {len(paths) - number} more)" if number == _PATHS_SHOWN < len(paths) else ""
                what = "the machine that built it" if certain else "somebody's machine"
                yield Finding(name, f"it names a path of {what}: {path}{more}"), certain
