"""What a PEP 517 hook knows and setuptools does not carry: config settings and a clean build folder."""

from __future__ import annotations

import contextlib
import contextvars
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rustcuda_backend import machine, source_tree
from rustcuda_backend.errors import PREFIX, RustcudaError

ConfigSettings: TypeAlias = "Mapping[str, str | list[str] | None]"

# Config settings that are setuptools' own and pass through to it.
SETUPTOOLS_KEYS = ("--global-option", "--build-option", "editable_mode", "editable-mode")

INTERRUPTED = 130

# As setuptools says it: could not write to 'FILE': No space left on device
_NAMED = re.compile(r"^error: could not [^']*'(.+)': ")


@dataclass(frozen=True)
class Session:
    """One running hook.

    Attributes:
        config_settings: What the front end passed with `-C`.
        build_base: A fresh folder for setuptools' build tree, so that nothing of an earlier build
            can get into a wheel.
        read_only: The source tree, if it cannot be written; the hook then works in a copy of it.
    """

    config_settings: ConfigSettings
    build_base: Path
    read_only: Path | None = None

    def for_setuptools(self) -> dict[str, str | list[str] | None]:
        """The config settings that are setuptools' own."""
        return {key: value for key, value in self.config_settings.items() if key in SETUPTOOLS_KEYS}

    def check_editable(self) -> None:
        """An editable install points into the source tree, and writes there.

        Raises:
            RustcudaError: That tree cannot be written.
        """
        if self.read_only:
            raise RustcudaError(
                "an editable install writes the kernels beside their sources, which cannot be written",
                where=str(self.read_only),
                hint="make the source tree writable, or install without -e",
            )


_current: contextvars.ContextVar[Session | None] = contextvars.ContextVar("session", default=None)


def current() -> Session | None:
    """The running hook's session; None where setuptools runs by itself."""
    return _current.get()


@contextlib.contextmanager
def open_session(config_settings: ConfigSettings | None) -> Iterator[Session]:
    """Opens the session of a hook and closes it when the hook is left."""
    project = Path.cwd()
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rustcuda-build-")))
        read_only = None
        if not source_tree.is_writable(project):
            read_only = project
            copy = stack.enter_context(source_tree.working_in_copy(project, scratch / "tree"))
            note = f"{PREFIX}the source tree cannot be written, so {copy} stands in for it"
            print(note, file=sys.stderr, flush=True)
        opened = Session(dict(config_settings or {}), scratch / "build", read_only)
        token = _current.set(opened)
        try:
            yield opened
        finally:
            _current.reset(token)


@contextlib.contextmanager
def setuptools_errors(*places: Path) -> Iterator[None]:
    """Around calls of setuptools: tells what the machine lacks as this package does.

    Args:
        places: The folders that setuptools writes to.

    Raises:
        RustcudaError: The machine lacks something.
    """
    try:
        yield
    except SystemExit as ended:
        # setuptools itself ends so, and leaves out which file it was.
        cause = ended.__context__
        while cause and not isinstance(cause, OSError):
            cause = cause.__context__
        if not (isinstance(ended.code, str) and isinstance(cause, OSError)):
            raise
        if named := _NAMED.search(ended.code):
            cause.filename = cause.filename or named[1]
        if told := machine.told(cause, *places):
            raise told from None
        raise
    except OSError as error:
        if told := machine.told(error, *places):
            raise told from None
        raise


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """Prints what the user can mend and exits with status 1; Ctrl-C exits with 130.

    All other exceptions are faults of ours and keep their traceback.
    """
    try:
        yield
    except RustcudaError as error:
        print(error, file=sys.stderr, flush=True)
        raise SystemExit(1) from None
    except OSError as error:
        told = machine.told(error, Path.cwd())
        if told is None:
            raise
        print(told, file=sys.stderr, flush=True)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print(f"{PREFIX}interrupted", file=sys.stderr, flush=True)
        raise SystemExit(INTERRUPTED) from None
