"""What commands print to stdout: in any locale, and with one line said where it cannot be written."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

from rustcuda_backend.errors import RustcudaError

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Watched:
    """A stream that remembers whether writing has failed: not everybody who prints lets it be known."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self.failure = error
            raise

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self.failure = error
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def arriving() -> Iterator[None]:
    """Sees to it that all that is printed in the block has been written when it is left.

    Raises:
        RustcudaError: It cannot be written.
        SystemExit: Nobody reads it any more.
    """
    # Python has none where the shell has closed it (`>&-`), and print would say nothing in silence.
    if sys.stdout is None:
        raise _unwritable("it is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A C locale must not turn an answer into a UnicodeEncodeError.
        sys.stdout.reconfigure(errors="backslashreplace")
    watched = _Watched(sys.stdout)
    try:
        with contextlib.redirect_stdout(cast("TextIO", watched)):
            yield
    finally:
        with contextlib.suppress(OSError):
            watched.flush()
        if watched.failure:
            _give_up(watched.failure)


def _give_up(error: OSError) -> NoReturn:
    # Python itself would flush when it ends, and complain.
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        # The reader (`| head`) has seen enough.
        raise SystemExit(1) from None
    raise _unwritable((error.strerror or f"{error}").lower()) from None


def _unwritable(why: str) -> RustcudaError:
    return RustcudaError(f"the output cannot be written: {why}", where="standard output")
