"""What each supported CUDA version brings: capabilities, default list, NVIDIA's wheels, driver floor."""

from __future__ import annotations

from dataclasses import dataclass

from rustcuda_backend.capability import KNOWN, Capability
from rustcuda_backend.errors import SettingsError


@dataclass(frozen=True)
class DriverFloor:
    """The oldest driver that loads an image.

    Attributes:
        branch: The driver branch of Linux, e.g. 525.
        cuda: What `cuDriverGetVersion` says there, e.g. 12000.
    """

    branch: int
    cuda: int


@dataclass(frozen=True)
class CudaVersion:
    """One CUDA release that kernels can be assembled with.

    Attributes:
        name: `"12.9"`.
        unknown: Known capabilities that its ptxas lacks.
        default_list: What is built when nothing asks for anything else; kernel-builder's
            CUDA_KERNEL_ARCHS for that release.
        wheels: NVIDIA's wheels with ptxas, libdevice and the packer, pinned.
        floor: The driver floor of its cubins for capabilities below 10.0.
    """

    name: str
    unknown: tuple[tuple[int, int], ...]
    default_list: str
    wheels: tuple[str, ...]
    floor: DriverFloor

    @property
    def capabilities(self) -> tuple[tuple[int, int], ...]:
        """The plain capabilities that its ptxas knows."""
        return tuple(known for known in KNOWN if known not in self.unknown)

    def driver_floor(self, capability: Capability) -> DriverFloor:
        """The oldest driver that takes this version's image for a capability.

        Source: NVIDIA's minor version compatibility (any driver of a major release takes the cubins
        of all its toolkits), and the driver that first knew the GPU.
        """
        first_driver = _BLACKWELL if capability.base >= (10, 0) else self.floor
        return max(first_driver, self.floor, key=lambda floor: floor.cuda)


_BLACKWELL = DriverFloor(570, 12080)

CUDA_VERSIONS = {
    version.name: version
    for version in (
        CudaVersion(
            name="12.9",
            unknown=((8, 8), (11, 0)),
            default_list="7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.1 12.0+PTX",
            wheels=("nvidia-cuda-nvcc-cu12==12.9.86", "nvidia-nvfatbin-cu12==12.9.82"),
            floor=DriverFloor(525, 12000),
        ),
        CudaVersion(
            name="13.0",
            unknown=((7, 0), (7, 2), (10, 1)),
            default_list="7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.3 11.0 12.0 12.1+PTX",
            wheels=("nvidia-cuda-nvcc==13.0.88", "nvidia-nvfatbin==13.0.85", "nvidia-nvvm==13.0.88"),
            floor=DriverFloor(580, 13000),
        ),
    )
}
DEFAULT_CUDA_VERSION = "12.9"


def cuda_version(name: str, *, where: str = "") -> CudaVersion:
    """The supported CUDA version of that name.

    Raises:
        SettingsError: A version that is not supported.
    """
    if name not in CUDA_VERSIONS:
        raise SettingsError(
            f"cuda-version '{name}' is not supported",
            where=where,
            hint=f"use one of {', '.join(CUDA_VERSIONS)}",
        )
    return CUDA_VERSIONS[name]
