"""Launches with clusters of blocks, or of blocks that run all at once."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.errors import ArgumentValueError, LaunchTooLarge
from rustcuda_backend.loader.runtime.launch import _Launch
from rustcuda_backend.loader.runtime.seam import _CAPABILITY_MAJOR, _LARGE_CLUSTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rustcuda_backend.loader.runtime.kernel import _Entry

# Clusters of more blocks are not the same on all GPUs, and must be allowed.
_PORTABLE_CLUSTER = 8


class _ExtendedLaunch(_Launch):
    """A kernel with its grid and block, and with clusters or blocks that run all at once."""

    __slots__ = ()

    def _check_fit(self, entry: _Entry) -> None:
        super()._check_fit(entry)
        if self.cluster is not None:
            self._fit_cluster(entry, self.cluster)

    def _fit_cluster(self, entry: _Entry, cluster: tuple[int, int, int]) -> None:
        name, library = self.kernel.__name__, self.kernel.library
        if library.driver.attribute(entry.device.index, _CAPABILITY_MAJOR) < 9:
            most = f"none on a GPU of compute capability {entry.device.capability}"
            raise LaunchTooLarge(name, "blocks in a cluster", f"{cluster}", most)
        grid = self.grid
        if grid[0] % cluster[0] or grid[1] % cluster[1] or grid[2] % cluster[2]:
            raise ArgumentValueError(name, "grid", f"a multiple of the cluster {cluster}", f"{grid}")
        if cluster[0] * cluster[1] * cluster[2] > _PORTABLE_CLUSTER:
            library.within(
                entry.device,
                lambda: library.driver.set_function_attribute(entry.handle, _LARGE_CLUSTERS, 1),
            )
