"""Finding NVIDIA's tools: ptxas, the fatbin packer and libdevice, and which CUDA version they count as."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rustcuda_backend import process
from rustcuda_backend.cuda_versions import CUDA_VERSIONS, CudaVersion
from rustcuda_backend.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import PurePath

DEFAULT_TOOLKIT = Path("/usr/local/cuda")


@dataclass(frozen=True)
class CudaTools:
    """NVIDIA's tools as they were found.

    Attributes:
        version: The supported CUDA version that this ptxas counts as, so that its driver floors are those
            of the cubins that this ptxas writes. Another one than asked for where a toolkit was named.
        ptxas: The executable.
        ptxas_version: `"12.9.86"`.
        libdevice: `libdevice.10.bc`.
        packer: The shared library libnvfatbin, or the executable fatbinary.
        source: Where ptxas comes from, for messages.
    """

    version: CudaVersion
    ptxas: Path
    ptxas_version: str
    libdevice: Path
    packer: Path
    source: str


class _Place(NamedTuple):
    """One place to look in, and which of the three tools it has."""

    source: str
    ptxas: Path | None
    libdevice: Path | None
    packer: Path | None
    # Named by the user: its ptxas is the one to use, or an error.
    named: bool = False

    @property
    def missing(self) -> list[str]:
        names = ("ptxas", "libdevice.10.bc", "libnvfatbin or fatbinary")
        return [name for name, tool in zip(names, self[1:4], strict=True) if tool is None]


class _Ptxas(NamedTuple):
    path: Path
    version: str
    counts_as: CudaVersion | None


# How a wheel or a toolkit calls each tool, on Linux and on Windows.
_PTXAS = ("bin/ptxas", "bin/ptxas.exe", "bin/*/ptxas.exe")
_LIBDEVICE = ("nvvm/libdevice/libdevice.10.bc",)
_PACKER = (
    "lib/libnvfatbin.so.[0-9]*",
    "lib64/libnvfatbin.so.[0-9]*",
    "targets/*/lib/libnvfatbin.so.[0-9]*",
    "bin/nvfatbin_*.dll",
    "bin/*/nvfatbin_*.dll",
    "bin/fatbinary",
    "bin/fatbinary.exe",
    "bin/*/fatbinary.exe",
)


def required_wheels(version: CudaVersion, *, ptxas: str, environ: Mapping[str, str]) -> list[str]:
    """The wheels that a build environment needs: none where the user has named a whole toolkit.

    Args:
        version: The CUDA version asked for.
        ptxas: The setting; a ptxas whose toolkit lacks the packer or libdevice needs the wheels' ones.
        environ: The environment, of which CUDA_HOME and CUDA_PATH count.
    """
    if environ.get("CUDA_HOME") or environ.get("CUDA_PATH"):
        return []
    if ptxas and not _place_of_setting(ptxas, environ).missing:
        return []
    return list(version.wheels)


def find_tools(version: CudaVersion, *, ptxas: str = "", environ: Mapping[str, str]) -> CudaTools:
    """Finds ptxas, and the packer and libdevice beside it or further on in the same order.

    Order: the setting; CUDA_HOME, CUDA_PATH; NVIDIA's wheels in this environment; PATH;
    /usr/local/cuda. A toolkit that the user named (the first two) is used if it is a supported CUDA
    version or a newer one of the same major version, and the result carries that version: a cubin's
    driver floor is decided by the ptxas that writes it. One that is merely there is used only if it is of
    the version asked for or newer within its major version; others are passed over.

    Args:
        version: The CUDA version asked for.
        ptxas: The setting: a path to ptxas.
        environ: The environment.

    Raises:
        ToolError: One is missing, a named toolkit is broken or does not fit, or ptxas does not run.
    """
    places = _places(version, ptxas, environ)
    passed_over = []
    for place in places:
        if place.ptxas is None:
            continue
        found = _identify(place.ptxas)
        if found.counts_as and (place.named or found.counts_as == version):
            return _with_the_rest(found, found.counts_as, version, place, places)
        if place.named:
            raise ToolError(
                f"ptxas {found.version} is of no supported CUDA version",
                where=f"{place.source}: {found.path}",
                hint=f"name a toolkit of {_supported()}, or name none to use NVIDIA's wheels",
            )
        passed_over.append(f"; does not fit: {found.path} ({found.version})")
    raise ToolError(
        f"there is no ptxas of CUDA {version.name}",
        where="looked for by the setting ptxas, CUDA_HOME, CUDA_PATH, NVIDIA's wheels, PATH, "
        + str(DEFAULT_TOOLKIT)
        + "".join(passed_over),
        hint=_install_line(version),
    )


@dataclass(frozen=True)
class Look:
    """One place that was looked in, and why its tools do not fit; `""` if they do."""

    source: str
    ptxas: Path | None
    problem: str


def looks(version: CudaVersion, *, ptxas: str = "", environ: Mapping[str, str]) -> list[Look]:
    """Looks in every place in the order of `find_tools`, whether or not an earlier one fits."""
    found: list[Look] = []
    try:
        found.extend(_look(place, version) for place in _places(version, ptxas, environ))
    except ToolError as error:
        # A place that the user named is broken; nothing behind it counts.
        found.append(Look(error.where or "setting ptxas", None, error.what))
    return found


def _look(place: _Place, version: CudaVersion) -> Look:
    if place.ptxas is None:
        return Look(place.source, None, "no ptxas")
    try:
        ptxas = _identify(place.ptxas)
    except ToolError as error:
        return Look(place.source, place.ptxas, error.what)
    problem = ""
    if not ptxas.counts_as or (ptxas.counts_as != version and not place.named):
        problem = f"it is {ptxas.version}, not of CUDA {version.name}"
    elif place.missing:
        problem = f"no {' and no '.join(place.missing)}"
    return Look(place.source, place.ptxas, problem)


def _with_the_rest(
    found: _Ptxas, counts_as: CudaVersion, asked: CudaVersion, place: _Place, places: Iterator[_Place]
) -> CudaTools:
    libdevice, packer = place.libdevice, place.packer
    for following in places if place.missing else ():
        # A toolkit of an unsupported version has a packer that does not know every capability.
        if following.ptxas is None or _identify(following.ptxas).counts_as:
            libdevice, packer = libdevice or following.libdevice, packer or following.packer
        if libdevice and packer:
            break
    if libdevice is None or packer is None:
        missing = _Place("", found.path, libdevice, packer).missing
        raise ToolError(
            f"there is a ptxas ({place.source}), but no {' and no '.join(missing)}",
            where=str(found.path),
            hint=_install_line(asked),
        )
    source = place.source
    if counts_as != asked:
        source += f", CUDA {counts_as.name} in place of {asked.name}"
    return CudaTools(counts_as, found.path, found.version, libdevice, packer, source)


def _places(version: CudaVersion, ptxas: str, environ: Mapping[str, str]) -> Iterator[_Place]:
    """The places to look in, in order; looked into one by one, so that an unused one may be broken."""
    if ptxas:
        yield _place_of_setting(ptxas, environ)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if environ.get(variable):
            yield _place_of_variable(variable, environ[variable])
    yield _place_of_wheels(version)
    on_path = shutil.which("ptxas", path=environ.get("PATH", ""))
    if on_path:
        yield _toolkit("PATH", _root(Path(on_path)))._replace(ptxas=Path(on_path))
    yield _toolkit(str(DEFAULT_TOOLKIT), DEFAULT_TOOLKIT)


def _place_of_setting(ptxas: str, environ: Mapping[str, str]) -> _Place:
    path = Path(shutil.which(ptxas, path=environ.get("PATH", "")) or Path(ptxas).expanduser())
    if not path.is_file():
        raise ToolError(
            f"the setting ptxas names '{ptxas}', which is no file",
            hint="name the executable, e.g. /usr/local/cuda/bin/ptxas, or name none to use NVIDIA's wheels",
        )
    return _toolkit("setting ptxas", _root(path))._replace(ptxas=path, named=True)


def _place_of_variable(variable: str, value: str) -> _Place:
    place = _toolkit(f"{variable}={value}", Path(value))
    if place.missing:
        raise ToolError(
            f"{variable} names a CUDA toolkit that has no {' and no '.join(place.missing)}",
            where=f"{variable}={value}",
            hint=f"name a whole toolkit of {_supported()}, or unset {variable} to use NVIDIA's wheels",
        )
    return place._replace(named=True)


def _place_of_wheels(version: CudaVersion) -> _Place:
    # By the wheels' own records: cuda-pathfinder does not look for one major version only.
    files = list(_wheel_files(version))

    def first(patterns: Sequence[str]) -> Path | None:
        return next((path for pattern in patterns for name, path in files if name.match(pattern)), None)

    return _Place("NVIDIA's wheels", first(_PTXAS), first(_LIBDEVICE), first(_PACKER))


def _wheel_files(version: CudaVersion) -> Iterator[tuple[PurePath, Path]]:
    for requirement in version.wheels:
        name, _, pinned = requirement.partition("==")
        for installed in importlib.metadata.distributions(name=name):
            if _major(installed.version) == _major(pinned):
                for file in installed.files or ():
                    path = Path(str(installed.locate_file(file)))
                    if path.is_file():
                        yield file, path


def _toolkit(source: str, root: Path) -> _Place:
    def first(patterns: Sequence[str]) -> Path | None:
        found = (path for pattern in patterns for path in sorted(root.glob(pattern)))
        return next((path for path in found if path.is_file()), None)

    return _Place(source, first(_PTXAS), first(_LIBDEVICE), first(_PACKER))


def _root(ptxas: Path) -> Path:
    """The toolkit that an executable belongs to; on Windows it may lie in `bin/x64`."""
    folder = ptxas.resolve().parent
    return folder.parent.parent if folder.parent.name == "bin" else folder.parent


def _identify(ptxas: Path) -> _Ptxas:
    try:
        finished = process.run([ptxas, "--version"])
    except PermissionError as error:
        raise ToolError("ptxas may not be executed", where=str(ptxas), hint=f"chmod +x {ptxas}") from error
    except OSError as error:
        raise ToolError(f"ptxas does not start: {error.strerror}", where=str(ptxas)) from error
    release = re.search(r"\bV(\d+)\.(\d+)\.\d+", finished.stdout)
    if not release:
        lines = (finished.stdout + finished.stderr).split("\n")
        said = next((line.strip() for line in lines if line.strip()), f"exit status {finished.returncode}")
        raise ToolError(
            f"this is not ptxas: asked for its version, it says '{said}'",
            where=str(ptxas),
            hint="set ptxas to the executable of a CUDA toolkit, e.g. /usr/local/cuda/bin/ptxas,\n"
            "or leave it out to use NVIDIA's wheels",
        )
    return _Ptxas(ptxas, release[0][1:], _counts_as(int(release[1]), int(release[2])))


def _counts_as(major: int, minor: int) -> CudaVersion | None:
    """The newest supported CUDA version of that major version which is not newer than this one."""
    fitting = [
        version
        for version in CUDA_VERSIONS.values()
        if _major(version.name) == str(major) and int(version.name.split(".")[1]) <= minor
    ]
    return max(fitting, key=lambda version: int(version.name.split(".")[1]), default=None)


def _major(version: str) -> str:
    return version.split(".")[0]


def _supported() -> str:
    return f"CUDA {' or '.join(CUDA_VERSIONS)} or newer within these major versions"


def _install_line(version: CudaVersion) -> str:
    return f"pip install {' '.join(version.wheels)}"
