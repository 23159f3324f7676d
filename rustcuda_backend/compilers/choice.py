"""Which compiler a crate is compiled by, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import oxide_crates, oxide_environ, oxide_tools
from rustcuda_backend.errors import ToolError
from rustcuda_backend.oxide_tools import Backend
from rustcuda_backend.settings import Settings


@dataclass(frozen=True)
class Choice:
    """The compiler for a crate.

    Attributes:
        why: What decided, for messages.
        backend: cuda-oxide's backend library; None where stock rustc compiles the crate.
    """

    why: str
    backend: Backend | None = None

    @property
    def name(self) -> str:
        """What the closing table calls it."""
        return "cuda-oxide" if self.backend else "stock rustc"


def choose(settings: Settings, directory: Path, environ: Mapping[str, str]) -> Choice:
    """Chooses by the setting, by what the crate depends on, and by what is there.

    Args:
        settings: For `compiler` and `cuda-oxide-backend`.
        directory: The crate's folder.
        environ: The environment.

    Raises:
        ToolError: cuda-oxide is asked for and not there, or a backend library is named that is no file.
    """
    asked = settings.where("compiler")
    if settings.compiler == "nvptx":
        return Choice(asked)
    if settings.compiler == "cuda-oxide":
        backend = oxide_tools.find_backend(settings, directory, environ)
        if backend:
            return Choice(asked, backend)
        raise ToolError(
            f"cuda-oxide's backend library {oxide_tools.LIBRARY} was not found",
            where=f"{asked}; looked for it in {_looked_in(environ)}",
            hint=oxide_tools.INSTALL_HINT,
        )
    if not oxide_crates.depends_on_device(directory, settings):
        return Choice(f"the crate does not depend on {oxide_crates.DEVICE}")
    backend = oxide_tools.find_backend(settings, directory, environ)
    if backend:
        return Choice(f"the crate depends on {oxide_crates.DEVICE}", backend)
    return Choice(f"the crate depends on {oxide_crates.DEVICE}, but cuda-oxide's backend library is not here")


def _looked_in(environ: Mapping[str, str]) -> str:
    cached = oxide_tools.cached_backend(environ)
    places = (
        *("the setting cuda-oxide-backend", oxide_environ.BACKEND_VARIABLE, str(oxide_tools.CONFIG)),
        *((str(cached),) if cached else ()),
    )
    return ", ".join(places)
