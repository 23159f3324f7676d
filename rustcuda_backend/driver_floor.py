"""The oldest driver that loads an image, by NVIDIA's compatibility rules, also for images of other makers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rustcuda_backend.cuda_versions import DriverFloor

if TYPE_CHECKING:
    from rustcuda_backend.capability import Capability

# Each CUDA version's own driver branch on Linux (CUDA toolkit release notes, table "CUDA toolkit and
# corresponding driver versions"), and the PTX ISA that came with it (PTX ISA, "Release notes").
_BRANCHES = {
    (9, 0): 384, (9, 1): 390, (9, 2): 396, (10, 0): 410, (10, 1): 418, (10, 2): 440,
    (11, 0): 450, (11, 1): 455, (11, 2): 460, (11, 3): 465, (11, 4): 470, (11, 5): 495,
    (11, 6): 510, (11, 7): 515, (11, 8): 520,
    (12, 0): 525, (12, 1): 530, (12, 2): 535, (12, 3): 545, (12, 4): 550, (12, 5): 555, (12, 6): 560,
    (12, 7): 565, (12, 8): 570, (12, 9): 575, (13, 0): 580, (13, 1): 590,
}  # fmt: skip
_CUDA_OF_PTX = {
    "6.0": (9, 0), "6.1": (9, 1), "6.2": (9, 2), "6.3": (10, 0), "6.4": (10, 1), "6.5": (10, 2),
    "7.0": (11, 0), "7.1": (11, 1), "7.2": (11, 2), "7.3": (11, 3), "7.4": (11, 4), "7.5": (11, 5),
    "7.6": (11, 6), "7.7": (11, 7), "7.8": (11, 8), "8.0": (12, 0), "8.1": (12, 1), "8.2": (12, 2),
    "8.3": (12, 3), "8.4": (12, 4), "8.5": (12, 5), "8.6": (12, 7), "8.7": (12, 8), "8.8": (12, 9),
    "9.0": (13, 0), "9.1": (13, 1),
}  # fmt: skip

# The CUDA version whose driver first knew a GPU, where that is not the first of its major version.
_FIRST_CUDA = {
    (7, 0): (9, 0), (7, 2): (9, 2), (7, 5): (10, 0), (8, 0): (11, 0), (8, 6): (11, 1), (8, 7): (11, 4),
    (8, 8): (13, 0), (8, 9): (11, 8), (9, 0): (11, 8),
}  # fmt: skip
_BLACKWELL = (12, 8)
# From this one on, drivers read zstd.
_FIRST_WITH_ZSTD = (12, 4)


def of_sass(capability: Capability, cuda: tuple[int, int]) -> DriverFloor | None:
    """The floor of a cubin: any driver of the toolkit's major version, if it knows the GPU.

    Before CUDA 11, a driver of the toolkit's own version.

    Args:
        capability: What the cubin is for.
        cuda: The CUDA version of the ptxas that wrote it.

    Returns:
        None where the CUDA version is newer than those known here.
    """
    own = (cuda[0], 0) if cuda[0] >= 11 else cuda
    return _floor(max(own, _first_cuda(capability)))


def of_ptx(capability: Capability, version: str) -> DriverFloor | None:
    """The floor of PTX: the driver whose compiler first knew its ISA, if it knows the GPU.

    Args:
        capability: What the PTX is for.
        version: Its ISA version, e.g. `"8.7"`.

    Returns:
        None where the ISA version is not known.
    """
    cuda = _CUDA_OF_PTX.get(version)
    return _floor(max(cuda, _first_cuda(capability))) if cuda else None


def of_zstd() -> DriverFloor:
    """The floor of whatever is compressed with zstd."""
    return DriverFloor(_BRANCHES[_FIRST_WITH_ZSTD], 12040)


def _first_cuda(capability: Capability) -> tuple[int, int]:
    return _BLACKWELL if capability.base >= (10, 0) else _FIRST_CUDA.get(capability.base, (0, 0))


def _floor(cuda: tuple[int, int]) -> DriverFloor | None:
    branch = _BRANCHES.get(cuda)
    return DriverFloor(branch, cuda[0] * 1000 + cuda[1] * 10) if branch else None
