"""The code that ends the loader of an editable install: it tells kernels that are not those of their sources.

The generator copies everything below the imports of `__future__`, as it does with the runtime, and under the
same rules. Nothing of it is in wheels.
"""

# pathlib is slow to import.
# ruff: noqa: PTH116, PTH118, PTH119, PTH123

from __future__ import annotations

import os as _os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Editable:
    """The sources as they were built.

    Args:
        project: The folder of pyproject.toml.
        folder: The package's source, where the generated files are.
        module: This module's full name.
        given: The settings that the install was given beside pyproject.toml.
        rebuild: Whether an import builds anew what has changed.
        sources: Names relative to the project, or whole where they are elsewhere; each with size, time and
            digest.
    """

    guard = "RUSTCUDA_REBUILDING"

    def __init__(
        self,
        project: str,
        folder: str,
        module: str,
        given: dict[str, str],
        rebuild: bool,
        sources: tuple[tuple[str, int, int, str], ...],
    ) -> None:
        self.project, self.folder, self.module = project, folder, module
        self.given, self.rebuild, self.sources = given, rebuild, sources

    def check(self, scope: dict[str, Any]) -> None:
        """Warns of changed sources, or builds them and executes the new module in the old one's place."""
        # Set while a build runs: programs that it starts may import this module.
        if self.guard in _os.environ:
            return
        changed = self.changed()
        if not changed:
            return
        named = ", ".join(changed[:3]) + (", …" if len(changed) > 3 else "")
        if not self.rebuild:
            import warnings

            message = (
                f"{self.module} was built before the last change of {named}; install again: pip install -e"
            )
            warnings.warn(f"{message} {self.project}", RuntimeWarning, stacklevel=3)
            return
        try:
            from rustcuda_backend.editable import rebuild
        except ImportError:
            raise ImportError(
                f"{self.module}: {named} changed, and building it again needs rustcuda-backend here; "
                "install the project's build requirements, then the project with --no-build-isolation",
                name=self.module,
            ) from None
        rebuild(self, named)
        self._become_new(scope)

    def changed(self) -> list[str]:
        """The sources that are not what they were when the kernels were built."""
        found = []
        for name, size, time, digest in self.sources:
            path = _os.path.join(self.project, name)
            try:
                status = _os.stat(path)
                # A time alone says little: git sets it, too.
                same = (status.st_size, status.st_mtime_ns) == (size, time) or self.digest(path) == digest
            except OSError:
                same = False
            if not same:
                found.append(name)
        return found

    @staticmethod
    def digest(path: str) -> str:
        """The SHA-256 of a source; of pyproject.toml only what is in our tables."""
        import hashlib

        with open(path, "rb") as stream:
            data = stream.read()
        if _os.path.basename(path) == "pyproject.toml":
            ours, lines = False, []
            for line in data.splitlines():
                text = line.strip()
                if text.startswith(b"["):
                    ours = text.strip(b"[ ").startswith(b"tool.rustcuda")
                if ours and text:
                    lines.append(text)
            data = b"\n".join(lines)
        return hashlib.sha256(data).hexdigest()

    def _become_new(self, scope: dict[str, Any]) -> None:
        path = _os.path.join(self.folder, self.module.rpartition(".")[2] + ".py")
        with open(path, encoding="utf-8") as stream:
            code = compile(stream.read(), path, "exec")
        for name in scope["__all__"]:
            scope.pop(name, None)
        _os.environ[self.guard] = self.module
        try:
            exec(code, scope)  # noqa: S102 (the module itself, as the import system would)
        finally:
            del _os.environ[self.guard]
