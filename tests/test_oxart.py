"""Reading what cuda-oxide embeds: whole blobs, files of the host that hold them, and damaged blobs."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oxart_blobs import CUBIN_KIND, LTO_KIND, NVVM_KIND, PTX, PTX_KIND, Blob, Host

from rustcuda_backend import containers
from rustcuda_backend.cli import main
from rustcuda_backend.errors import FormatError
from rustcuda_backend.inspection import inspect
from rustcuda_backend.oxart import Bundle, Entry, Payload, read

PLAIN = Blob()
STORE = Bundle(
    "some-package",
    "sm_80",
    1,
    (),
    (Payload("PTX", "some_package.ptx", PTX),),
    (Entry("store", "kernel"),),
)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(tmp_path_factory.mktemp("host"))


def refused(data: bytes) -> FormatError:
    with pytest.raises(FormatError) as caught:
        read(data)
    return caught.value


# --- whole ones ------------------------------------------------------------------------------------------


def test_a_blob_of_version_1() -> None:
    assert read(PLAIN.data()) == (STORE,)
    # There its options are reserved.
    assert read(PLAIN.but(options=1 << 63)) == (STORE,)


def test_a_blob_of_version_2() -> None:
    blob = Blob(
        "größer",
        "sm_90a",
        (
            (PTX_KIND, "a.ptx", b"a"),
            (NVVM_KIND, "b.ll", b"bb"),
            (LTO_KIND, "c.ltoir", b"ccc"),
            (CUBIN_KIND, "d.cubin", bytes(100)),
        ),
        ((1, "kernel", 2**64 - 1), (2, "function", None), (1, "other", 0)),
        version=2,
        options=3,
    )
    (bundle,) = read(blob.data())
    assert (bundle.name, bundle.target, bundle.version) == ("größer", "sm_90a", 2)
    assert bundle.options == ("no FMA", "line tables")
    assert bundle.payloads == (
        Payload("PTX", "a.ptx", b"a"),
        Payload("NVVM IR", "b.ll", b"bb"),
        Payload("LTO-IR", "c.ltoir", b"ccc"),
        Payload("cubin", "d.cubin", bytes(100)),
    )
    assert bundle.entries == (
        Entry("kernel", "kernel", 2**64 - 1),
        Entry("function", "device function"),
        Entry("other", "kernel", 0),
    )


@pytest.mark.parametrize(
    ("bits", "options"),
    [(0, ()), (1, ("no FMA",)), (2, ("line tables",)), (4, ("full debug",)), (5, ("no FMA", "full debug"))],
)
def test_options(bits: int, options: tuple[str, ...]) -> None:
    assert read(Blob(version=2, options=bits).data())[0].options == options


@pytest.mark.parametrize("gap", [0, 8, 4096])
def test_blobs_behind_one_another(gap: int) -> None:
    names = ("first", "second", "third")
    section = bytes(gap).join(Blob(name).data() for name in names)
    assert [bundle.name for bundle in read(section + bytes(gap))] == list(names)


def test_a_section_of_zeros_has_none() -> None:
    assert read(b"") == read(bytes(1 << 20)) == ()


def test_a_blob_without_code() -> None:
    (bundle,) = read(Blob(payloads=(), entries=()).data())
    assert (bundle.payloads, bundle.entries) == ((), ())


# --- files of the host -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["program", "library", "rlib"])
def test_files_of_the_host(host: Host, kind: str) -> None:
    objects = [host.object_file(name, Blob(name).data()) for name in ("one", "two")]
    path: Path = getattr(host, kind)(f"bundles.{kind}", *objects)
    parts = inspect(path)
    assert [part.bundle.name for part in parts if part.bundle] == ["one", "two"]
    for part, file in zip(parts, objects, strict=True):
        inside = f"{file.name}, .oxart" if kind == "rlib" else ".oxart"
        assert part.bundle
        assert part.place == f"{inside}, bundle {part.bundle.name}"
        ((image,),) = (part.images,)
        assert (image.capability, image.kind, image.driver_source) == ("8.0", "PTX", "PTX ISA 7.0")
        assert [kernel.name for kernel in image.kernels or ()] == ["store"]


def test_a_stripped_file_has_nothing(host: Host) -> None:
    path = host.library("zeros.so", host.object_file("zeros", bytes(64)))
    with pytest.raises(FormatError, match="there is no device code in this file"):
        inspect(path)


def test_the_table(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    blob = Blob(version=2, options=5, entries=((1, "store", 7), (2, "helper", None)))
    ltoir = Blob("linked", "compute_90a", ((LTO_KIND, "l.ltoir", b"lto"),), ())
    path = host.library("table.so", host.object_file("t", blob.data()), host.object_file("u", ltoir.data()))
    assert main(["inspect", str(path)]) == 0
    assert (
        capsys.readouterr().out
        == f"""\
.oxart, bundle some-package
  made by cuda-oxide for sm_80, bundle format 2, no FMA, full debug
  capability  image  compression  bytes  kernels  driver from  known by
  8.0         PTX    none           {len(PTX)}        1          450  PTX ISA 7.0

  entry   kind             metadata
  store   kernel                  7
  helper  device function         -

.oxart, bundle linked
  made by cuda-oxide for compute_90a, bundle format 1
  capability  image   compression  bytes  kernels  driver from  known by
  9.0a        LTO-IR  none             3        -            -  not code
"""
    )


def test_json(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    path = host.rlib("lib.rlib", host.object_file("j", Blob(entries=((1, "store", 7),)).data()))
    assert main(["inspect", "--json", str(path)]) == 0
    (part,) = json.loads(capsys.readouterr().out)["parts"]
    assert part["place"] == "j.embed.o, .oxart, bundle some-package"
    assert part["bundle"] == {
        "name": "some-package",
        "target": "sm_80",
        "version": 1,
        "options": [],
        "payloads": ["some_package.ptx"],
        "entries": [{"name": "store", "kind": "kernel", "metadata": 7}],
    }
    assert [(image["kind"], image["capability"]) for image in part["images"]] == [("PTX", "8.0")]


def test_a_payload_that_is_not_what_it_says(host: Host) -> None:
    for number, kind in enumerate((PTX_KIND, CUBIN_KIND)):
        blob = Blob(payloads=((kind, "x", b"nothing of the kind"),)).data()
        path = host.rlib(f"wrong{number}.rlib", host.object_file(f"wrong{number}", blob))
        with pytest.raises(FormatError) as caught:
            inspect(path)
        assert f"{path}, wrong{number}.embed.o, .oxart, bundle some-package" in caught.value.where


# --- damaged ones ----------------------------------------------------------------------------------------

WHOLE = len(PLAIN.data())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"OXIDEART", "the header of an embedded bundle is cut off"),
        (b"x" * 100, "there is no bundle of cuda-oxide where one should begin"),
        (PLAIN.data() + b"OXIDEARK" + bytes(24), "there is no bundle of cuda-oxide where one should begin"),
        (PLAIN.but(version=0), "unknown version 0, with a header of 32 bytes"),
        (PLAIN.but(version=3), "unknown version 3, with a header of 32 bytes"),
        (PLAIN.but(header=40), "unknown version 1, with a header of 40 bytes"),
        (PLAIN.data()[:-1], f"it claims {WHOLE} bytes, {WHOLE - 1} are there"),
        (PLAIN.but(total=2**32 - 1), f"it claims 4294967295 bytes, {WHOLE} are there"),
        (PLAIN.but(total=0), "it claims 1 payloads and 1 entries in 0 bytes"),
        (PLAIN.but(total=31), "it claims 1 payloads and 1 entries in 31 bytes"),
        (PLAIN.but(entries=65535), "it claims 1 payloads and 65535 entries"),
        (PLAIN.but(payloads=65535), "it claims 65535 payloads and 1 entries"),
        (PLAIN.but(name=65535), "the bundle's records reach beyond its end"),
        (Blob(version=2, options=8).data(), r"unknown compile options \(0x8\)"),
        (Blob(version=2, options=1 << 63).data(), r"unknown compile options \(0x8000000000000000\)"),
        # Both kinds of debug information at once.
        (Blob(version=2, options=6).data(), r"unknown compile options \(0x6\)"),
        (Blob(name="").data(), "bundle's name, at byte 32, is no printable"),
        (Blob(target="").data(), "bundle's target, at byte 44, is no printable"),
        (Blob(name="\x1b[2J").data(), "bundle's name, at byte 32, is no printable"),
        (Blob().data().replace(b"some-package", b"\xff" * 12), "bundle's name, at byte 32, is no printable"),
        (Blob(payloads=((0x300, "x", b"x"),)).data(), "payload of the unknown kind 0x300"),
        (Blob(entries=((3, "x", None),)).data(), "entry of the unknown kind 3"),
        (Blob(entries=((1, "a\nb", None),)).data(), "bundle's entry's symbol, at byte"),
        (Blob(payloads=((PTX_KIND, "a\nb", b"x"),)).data(), "bundle's payload's name, at byte"),
        (Blob(payloads=((PTX_KIND, "x", b""),)).data(), "a part of the bundle at byte [0-9]+ is empty"),
        (Blob(entries=((1, "", None),)).data(), "a part of the bundle at byte [0-9]+ is empty"),
    ],
)
def test_malformed(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(data)


def test_where_it_is(host: Host) -> None:
    good = PLAIN.data()
    assert refused(good + PLAIN.but(version=9)).where == f"blob at byte {len(good)}"
    path = host.library("bad.so", host.object_file("bad", good + PLAIN.but(version=9)))
    with pytest.raises(FormatError) as caught:
        inspect(path)
    assert caught.value.where == f"{path}, .oxart, blob at byte {len(good)}"


# Where the first payload's record stands: behind the header, the name and the target.
RECORD = 32 + len("some-package") + len("sm_80")


@pytest.mark.parametrize(
    ("place", "number"),
    [(place, number) for place in (4, 12, 36) for number in (0, 31, RECORD, WHOLE, 2**31, 2**32 - 1)]
    + [(8, number) for number in (0, WHOLE, 2**31, 2**32 - 1, 2**32 - RECORD)],
)
def test_offsets_and_lengths_out_of_range(place: int, number: int) -> None:
    """Places in the records: of data, name and symbol, and the bytes of data.

    A sum that overflows 32 bits is as wrong as one that is merely too large.
    """
    data = bytearray(PLAIN.data())
    struct.pack_into("<I", data, RECORD + place, number)
    what = refused(bytes(data)).what
    assert any(word in what for word in ("overlap", "beyond its end", "is empty"))


def test_parts_that_overlap_cost_no_memory() -> None:
    """65535 payloads that are all the same megabyte would be 64 GiB."""
    size = 1 << 20
    data = bytearray(Blob(payloads=((PTX_KIND, "x", b"x"),) * 65535, entries=()).data()) + bytes(size)
    struct.pack_into("<I", data, 12, len(data))
    for record in range(RECORD, RECORD + 24 * 65535, 24):
        struct.pack_into("<II", data, record + 4, len(data) - size, size)
    tracemalloc.start()
    try:
        assert "overlap" in refused(bytes(data)).what
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_a_million_entries() -> None:
    """In many blobs, since one has at most 65535."""
    blob = Blob(payloads=(), entries=((1, "e", None),) * 65535).data()
    assert len(read(blob)[0].entries) == 65535
    assert "more than 4096 bundles or 131072 entries" in refused(blob * 16).what


def test_a_million_bundles() -> None:
    blob = Blob("n", "t", payloads=(), entries=()).data()
    blob = Blob("n", "t", payloads=(), entries=()).but(total=len(blob))
    assert len(read(blob * 4096)) == 4096
    assert "more than 4096 bundles or 131072 entries" in refused(blob * 1_000_000).what


DAMAGED = b"".join(
    (PLAIN.data(), bytes(16), Blob(version=2, options=1, entries=((1, "store", 7), (2, "f", None))).data())
)


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_damage_anywhere_is_one_error(data: st.DataObject) -> None:
    changed = bytearray(DAMAGED)
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(changed) - 4))
        if data.draw(st.booleans()):
            changed[place] = data.draw(st.integers(0, 255))
        else:  # a whole number, as likely a large one as a small one
            number = data.draw(st.one_of(st.integers(0, 64), st.integers(0, 2**32 - 1)))
            struct.pack_into("<I", changed, place, number)
    cut = bytes(changed[: data.draw(st.integers(0, len(changed)))])
    try:
        bundles = read(cut)
    except FormatError as error:
        assert error.where.startswith("blob at byte ")  # noqa: PT017
        assert error.what.isprintable()  # noqa: PT017
    else:
        assert sum(len(payload.data) for bundle in bundles for payload in bundle.payloads) <= len(cut)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.sampled_from([PTX_KIND, NVVM_KIND, LTO_KIND, CUBIN_KIND]), st.binary(min_size=1))),
    st.lists(st.tuples(st.sampled_from([1, 2]), st.none() | st.integers(0, 2**64 - 1))),
    st.sampled_from([0, 1, 2, 3, 4, 5]),
    st.integers(0, 64),
)
def test_what_was_written_is_read(
    payloads: list[tuple[int, bytes]], entries: list[tuple[int, int | None]], options: int, gap: int
) -> None:
    blob = Blob(
        payloads=tuple((kind, f"{number}.bin", code) for number, (kind, code) in enumerate(payloads)),
        entries=tuple((kind, f"e{number}", metadata) for number, (kind, metadata) in enumerate(entries)),
        version=2,
        options=options,
    )
    first, second = read(blob.data() + bytes(gap) + PLAIN.data())
    assert [payload.data for payload in first.payloads] == [code for _, code in payloads]
    assert [payload.name for payload in first.payloads] == [name for _, name, _ in blob.payloads]
    assert [(entry.name, entry.metadata) for entry in first.entries] == [each[1:] for each in blob.entries]
    assert second == STORE


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_damage_of_the_file_around_it(host: Host, data: st.DataObject) -> None:
    """Section tables and archive headers lie like blobs do."""
    path = host.folder / "around.so"
    if not path.exists():
        host.library(path.name, host.object_file("around", PLAIN.data()))
        host.rlib("around.rlib", host.folder / "around.embed.o")
    good = (host.folder / data.draw(st.sampled_from(["around.embed.o", "around.rlib"]))).read_bytes()
    changed = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(changed) - 8))
        struct.pack_into("<Q", changed, place, data.draw(st.integers(0, 2**64 - 1)))
    damaged = host.folder / "damaged"
    damaged.write_bytes(bytes(changed[: data.draw(st.integers(1, len(changed)))]))
    try:
        assert containers.pieces(damaged)
        inspect(damaged)
    except FormatError as error:
        assert str(damaged) in error.where  # noqa: PT017
