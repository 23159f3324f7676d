"""Launches with clusters of blocks, or of blocks that run all at once."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.errors import ArgumentValueError, LaunchTooLarge
from rustcuda_backend.loader.runtime.launch import _Launch
from rustcuda_backend.loader.runtime.seam import _CAPABILITY_MAJOR, _LARGE_CLUSTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rustcuda_backend.loader.runtime.kernel import _Entry

# Clusters of more blocks are not the same on all GPUs, and must be allowed.
_PORTABLE_CLUSTER = 8


class _ExtendedLaunch(_Launch):
    """A kernel with its grid and block, and what takes cuLaunchKernelEx; launches go the general way."""

    __slots__ = ("cluster", "cooperative")

    cluster: tuple[int, int, int] | None
    cooperative: bool

    def _launch(self, entry: _Entry, stream: int, address: Any) -> Any:
        grid, block = (self.gx, self.gy, self.gz), (self.bx, self.by, self.bz)
        return self.kernel.library.driver.launch_extended(
            entry.handle, grid, block, self.shared, stream, address, self.cluster, self.cooperative
        )

    def _fit(self, device: int) -> _Entry:
        entry = super()._fit(device)
        if self.cluster is not None:
            self._fit_cluster(entry, self.cluster)
        return entry

    def _fit_cluster(self, entry: _Entry, cluster: tuple[int, int, int]) -> None:
        name, library = self.kernel.__name__, self.kernel.library
        if library.driver.attribute(entry.device.index, _CAPABILITY_MAJOR) < 9:
            most = f"none on a GPU of compute capability {entry.device.capability}"
            raise LaunchTooLarge(name, "blocks in a cluster", f"{cluster}", most)
        grid = (self.gx, self.gy, self.gz)
        if grid[0] % cluster[0] or grid[1] % cluster[1] or grid[2] % cluster[2]:
            raise ArgumentValueError(name, "grid", f"a multiple of the cluster {cluster}", f"{grid}")
        if cluster[0] * cluster[1] * cluster[2] > _PORTABLE_CLUSTER:
            library.within(
                entry.device,
                lambda: library.driver.set_function_attribute(entry.handle, _LARGE_CLUSTERS, 1),
            )
