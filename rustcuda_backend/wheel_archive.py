"""A wheel as an archive: whether its members can be unpacked safely, and whether RECORD tells the truth."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import stat
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rustcuda_backend import named_file
from rustcuda_backend.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DRIVE = re.compile(r"[A-Za-z]:")
# Of a line that is no entry, so much is enough to find it.
_SHOWN = 100
# They sign RECORD, so it cannot list them.
_UNRECORDED = ("RECORD", "RECORD.jws", "RECORD.p7s")


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a wheel.

    Attributes:
        place: The member that it is about; `""` for the wheel itself.
        what: What is wrong.
    """

    place: str
    what: str

    def __str__(self) -> str:
        """One line."""
        text = " ".join((f"{self.place}: {self.what}" if self.place else self.what).splitlines())
        # Names in a wheel must not steer the terminal.
        return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def read_members(path: Path) -> tuple[dict[str, bytes], list[Finding]]:
    """The files in a wheel, and which of them an installer must not unpack.

    Raises:
        FormatError: It is no archive, cannot be read, or is too large when unpacked.
    """
    named_file.check(path)
    files: dict[str, bytes] = {}
    findings = []
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
            named_file.check_size(unpacked, "the wheel, unpacked,", str(path))
            for member in archive.infolist():
                problem = _problem(member, files)
                if problem:
                    findings.append(Finding(member.filename, problem))
                elif not member.is_dir():
                    files[member.filename] = archive.read(member)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        # The last two: encrypted, or compressed in a way that this Python lacks.
        said = error.strerror if isinstance(error, OSError) else error
        raise FormatError(f"the wheel cannot be read: {said}", where=str(path)) from None
    return files, findings


def _problem(member: zipfile.ZipInfo, before: Mapping[str, bytes]) -> str:
    # zipfile has turned the platform's separators into `/` in filename, but not in orig_filename.
    name = member.orig_filename
    if "\\" in name:
        return "a backslash in its name is a folder on Windows"
    if "\0" in name:
        return "its name has a NUL in it"
    if name.startswith("/") or _DRIVE.match(name):
        return "its name is an absolute path"
    if ".." in PurePosixPath(name).parts:
        return "its name leads out of the folder that the wheel is unpacked into"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "it is a symbolic link"
    return "it is in the wheel twice" if name in before else ""


def check_record(files: Mapping[str, bytes]) -> Iterator[Finding]:
    """Holds every file against RECORD."""
    records = [name for name in files if re.fullmatch(r"[^/]+\.dist-info/RECORD", name)]
    if not records:
        yield Finding("", "the wheel has no *.dist-info/RECORD, the list of its files; installers refuse it")
        return
    if len(records) > 1:
        yield Finding("", f"the wheel has several lists of its files: {', '.join(records)}")
        return
    (record,) = records
    listed: dict[str, tuple[str, str]] = {}
    try:
        rows = _rows(files[record])
    except (ValueError, csv.Error) as error:
        yield Finding(record, f"it is no list of files: {error}")
        return
    for number, row in rows:
        if len(row) != 3:
            shown = ",".join(row)[:_SHOWN]
            yield Finding(record, f"line {number} has not the three fields name, hash and size: {shown}")
        elif row[0] in listed:
            yield Finding(record, f"it lists {row[0]} twice")
        else:
            listed[row[0]] = (row[1], row[2])
    folder = record.rpartition("/")[0]
    exempt = {f"{folder}/{name}" for name in _UNRECORDED}
    for name in sorted(files.keys() - exempt):
        if name not in listed:
            yield Finding(name, "RECORD does not list it")
        else:
            yield from _check_entry(name, files[name], *listed[name])
    for name in sorted(listed.keys() - files.keys()):
        yield Finding(name, "RECORD lists it, but it is not in the wheel")


def _rows(record: bytes) -> list[tuple[int, list[str]]]:
    """The lines of RECORD that are not empty, numbered from 1.

    Raises:
        ValueError: It is no text, or none of its lines is about a file.
        csv.Error: It is no table.
    """
    try:
        text = record.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    reader = csv.reader(io.StringIO(text, newline=""))
    rows = [(reader.line_num, row) for row in reader if row]
    if not rows:
        raise ValueError("it is empty")
    if not any(len(row) == 3 for _, row in rows):
        raise ValueError("none of its lines has the three fields name, hash and size")
    return rows


def _check_entry(name: str, data: bytes, digest: str, size: str) -> Iterator[Finding]:
    algorithm, _, wanted = digest.partition("=")
    if algorithm not in ("sha256", "sha384", "sha512"):
        yield Finding(name, f"RECORD has no SHA-256 of it, but '{digest}'")
    else:
        found = base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode()
        if found != wanted:
            yield Finding(name, f"it is not the file that RECORD lists: its {algorithm} is {found}")
    if size and size != str(len(data)):
        yield Finding(name, f"it has {len(data)} bytes, but {size} according to RECORD")
