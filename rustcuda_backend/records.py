r"""The records that `rustcuda-device`'s attributes leave in the PTX (device/rustcuda-device/src/record.rs).

Lines end where `\x1e` stands, fields where `\x1f` stands:

    rustcuda 1 · name saxpy · doc … · launch_bounds 256 2 · parameter x &[f32]
    rustcuda 1 · constant TABLE · doc … · type [f32; 64] · scalar f32 · storage 256 4
"""

from __future__ import annotations

from rustcuda_backend.errors import SignatureError

# These two ASCII separators are in no name and type, and rustcuda-device takes them out of doc comments.
_LINE = "\x1e"
_FIELD = "\x1f"


def lines(data: bytes) -> list[list[str]]:
    """The fields of each line behind the first, which tells the version.

    Raises:
        SignatureError: A record of another version.
    """
    first, *others = (line.split(_FIELD) for line in data.decode("utf-8").split(_LINE))
    if first != ["rustcuda", "1"]:
        raise SignatureError(
            f"a record in the PTX has the unknown version {' '.join(first)!r}",
            hint="use the rustcuda-device crate that comes with this rustcuda-backend",
        )
    return others


def clean_doc(doc: str) -> str:
    """Drops the one space that follows `///` on each line."""
    return "\n".join(line.removeprefix(" ").rstrip() for line in doc.split("\n")).strip()
