"""The setting `kernels`: PTX that cuda-oxide embedded in a file, through ptxas, packer, wheel and sdist."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from oxart_blobs import CUBIN_KIND, LTO_KIND, NVVM_KIND, PTX_KIND, Blob, Host, ptx
from projects import MANIFEST, PLAIN_HEAD, PLAIN_KERNEL, MakeProject

import rustcuda_backend as backend
from rustcuda_backend import containers, elf, elf_reader, fatbin, oxart, pipeline, process
from rustcuda_backend.artefact import Embedded, EmbeddedPtx
from rustcuda_backend.capability import KNOWN, Capability, all_cfg_values, parse_list
from rustcuda_backend.cli import main
from rustcuda_backend.cuda import CudaTools
from rustcuda_backend.errors import CapabilityError, CompileError, FormatError, RustcudaError, SettingsError
from rustcuda_backend.modules import modules
from rustcuda_backend.pipeline import Kernels
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.report import Report
from rustcuda_backend.settings import read_settings
from rustcuda_backend.stripping import strip

LIBRARY = "some_package/_native.so"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    folder = tmp_path / "host"
    folder.mkdir()
    return Host(folder)


@pytest.fixture
def make(make_project: MakeProject, host: Host):
    """Returns a function that makes a project with a library of blobs in its package."""

    def do(*blobs: Blob, kernels: str = LIBRARY, tables: str = "", settings: str = "") -> Path:
        project = make_project()
        shutil.rmtree(project / "kernels")
        text = (project / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.rustcuda]")[0]
        own = tables or f'kernels = "{kernels}"\n{settings}\n'
        (project / "pyproject.toml").write_text(f"{text}[tool.rustcuda]\n{own}", encoding="utf-8")
        objects = [host.object_file(f"o{number}", blob.data()) for number, blob in enumerate(blobs)]
        if objects:
            shutil.copy(host.library("_native.so", *objects), project / LIBRARY)
        return project

    return do


def of(code: bytes, *, name: str = "some-package", **fields: object) -> Blob:
    """A blob with a text of PTX, which says of it what is right unless it is told otherwise."""
    target = re.search(rb"\.target (\w+)", code)
    right = {
        "target": target[1].decode() if target else "sm_80",
        "entries": tuple((1, kernel.decode(), None) for kernel in re.findall(rb"\.entry (\w+)", code)),
    }
    return Blob(name, payloads=((PTX_KIND, "0.ptx", code),), **{**right, **fields})


def build(project: Path, capabilities: str = "8.0", report: Report | None = None, **config: str) -> Kernels:
    settings = read_settings(read_table(project) or {}, {"capabilities": capabilities, **config}, {})
    return pipeline.build(project, "some_package.kernels_cuda", settings, report or Report())


def refused(project: Path, capabilities: str = "8.0") -> RustcudaError:
    with pytest.raises(RustcudaError) as caught:
        build(project, capabilities)
    return caught.value


def images(kernels: Kernels) -> list[str]:
    return [f"{image.kind} {image.capability.name}" for image in fatbin.read(kernels.fatbin).images]


def kept(project: Path, sm: str) -> str:
    """The PTX that ptxas got."""
    return (project / f"target/rustcuda/{sm}/{sm}.ptx").read_text(encoding="utf-8")


# --- which PTX is assembled ------------------------------------------------------------------------------


def test_ptx_is_assembled_for_every_newer_capability(make, tools: CudaTools, tools13: CudaTools) -> None:
    """Also for variants, and for those that need a newer PTX ISA than the text has."""
    project = make(Blob())
    for version, each in (("12.9", tools), ("13.0", tools13)):
        known = [base for base in KNOWN if base >= (8, 0) and base in each.version.capabilities]
        names = [f"{major}.{minor}" for major, minor in known]
        names += [f"{name}a" for name in names if float(name) >= 9]
        names += [f"{name}f" for name in names if float(name.rstrip("a")) >= 10 and not name.endswith("a")]
        kernels = build(project, ";".join(names), **{"cuda-version": version})
        assert set(images(kernels)) == {f"sass {name}" for name in names}


def test_the_module(make) -> None:
    kernels = build(make(Blob()), "8.0;9.0+PTX")
    assert images(kernels) == ["sass 8.0", "sass 9.0", "ptx 9.0"]
    assert "arg0: *mut _, arg1: u64, arg2: u32" in kernels.loader.stub
    shipped = fatbin.read(kernels.fatbin).images[-1].data
    assert b".target sm_90" in shipped


@pytest.mark.parametrize(
    ("capability", "chosen"),
    [("8.0", "a80"), ("8.9", "a80"), ("9.0", "a90"), ("9.0a", "a90a"), ("10.0", "a90"), ("10.3f", "a100f")],
)
def test_the_nearest_of_several(make, capability: str, chosen: str) -> None:
    targets = {"sm_80": "7.0", "sm_90": "7.8", "sm_90a": "8.0", "sm_100f": "8.8"}
    bundles = [
        of(ptx(target, version=version, kernel=target.replace("sm_", "a")))
        for target, version in targets.items()
    ]
    kernels = build(make(*bundles), capability)
    assert re.findall(r"^(a\w+): ", kernels.loader.stub, re.MULTILINE) == [chosen]


def every_capability() -> list[Capability]:
    return [parse_list(value)[0] for value in all_cfg_values()]


@pytest.mark.parametrize("wanted", every_capability(), ids=str)
def test_ptx_for_just_this_capability_comes_first(wanted: Capability) -> None:
    found = tuple(EmbeddedPtx(each, "") for each in every_capability())
    assert Embedded(Path("a.so"), "p", found, "").best_for(wanted).capability == wanted


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("10.0", "10.0"), ("10.0f", "10.0f"), ("10.0a", "10.0a"), ("10.3a", "10.0f"), ("10.3f", "10.0f"),
        ("10.3", "10.0"), ("10.1", "10.0"), ("10.1a", "10.0"), ("10.1f", "10.0"), ("11.0a", "10.0"),
        ("12.1f", "12.0f"), ("12.1a", "12.0f"), ("12.1", "10.0"), ("12.0a", "12.0f"), ("9.0a", "8.0"),
    ],
)  # fmt: skip
def test_ptx_of_a_family_serves_its_members_alone(wanted: str, chosen: str) -> None:
    found = tuple(EmbeddedPtx(each, "") for each in parse_list("8.0 10.0 10.0a 10.0f 12.0f"))
    (capability,) = parse_list(wanted)
    assert Embedded(Path("a.so"), "p", found, "").best_for(capability).capability.name == chosen


@pytest.mark.parametrize(
    ("target", "version", "capability"),
    [
        ("sm_100f", "8.8", "10.1f"),
        ("sm_100f", "8.8", "10.1a"),
        ("sm_90", "7.8", "8.9"),
        ("sm_90a", "8.0", "9.0"),
        ("sm_90a", "8.0", "10.0"),
        ("sm_90a", "8.0", "10.0a"),
        ("sm_100f", "8.8", "10.0"),
        ("sm_103f", "8.8", "10.0f"),
        ("sm_100f", "8.8", "12.0f"),
    ],
)
def test_ptx_for_other_gpus(make, target: str, version: str, capability: str) -> None:
    error = refused(make(of(ptx(target, version=version))), capability)
    (built,) = parse_list(target)
    assert isinstance(error, CapabilityError)
    assert error.what == f"the PTX in this file is for {built.name}, and cannot be assembled for {capability}"
    assert error.where.endswith(LIBRARY)
    assert f"leave {capability} out" in error.hint


def test_no_capability_is_built_where_one_lacks(make) -> None:
    project = make(of(ptx("sm_90", version="7.8")))
    assert "cannot be assembled for 8.0" in refused(project, "9.0;8.0").what
    assert not (project / "target/rustcuda/sm_90").exists()


@pytest.mark.parametrize(
    ("options", "settings", "expected"),
    [
        (0, "", ()),
        (1, "", ("-fmad=false",)),
        (2, "", ("-lineinfo",)),
        (2, "lineinfo = true", ("-lineinfo",)),
        (5, 'ptxas-args = "--maxrregcount=32"', ("-fmad=false", "-g", "--maxrregcount=32")),
    ],
)
def test_ptxas_keeps_to_compile_options(
    make, monkeypatch: pytest.MonkeyPatch, options: int, settings: str, expected: tuple[str, ...]
) -> None:
    given = []

    def spy(module, tools, arguments, keep):
        given.append(arguments)
        return assembled(module, tools, arguments, keep)

    assembled = pipeline.assembled
    monkeypatch.setattr(pipeline, "assembled", spy)
    build(make(of(ptx(), version=2, options=options), settings=settings))
    assert given == [expected]


def test_what_the_build_says(make, capsys: pytest.CaptureFixture[str]) -> None:
    generic = [ptx(kernel=f"turn_TID_{digit * 32}") for digit in "ab"]
    odd = ptx(kernel="odd").replace(b".param .u64 odd_param_1", b".param .align 4 .b8 odd_param_1[12]")
    text = ptx() + b"".join(code[code.index(b".visible") :] for code in (*generic, odd))
    project = make(of(text))
    kernels = build(project)
    said = capsys.readouterr().err
    assert "have no stable names and are left out of the module: turn; write a kernel" in said
    assert "kernels that Python cannot launch, for the types of their parameters: odd\n" in said
    assert f"PTX for 8.0 ({project / LIBRARY}, package some-package)" in said
    assert "compiler: none ([tool.rustcuda] kernels: cuda-oxide has compiled them)" in said
    assert re.findall(r"^(\w+): _", kernels.loader.stub, re.MULTILINE) == ["store"]


# --- errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernels", "what", "hint"),
    [
        ("../host/_native.so", "the file of kernels '../host/_native.so' is outside the project", "inside"),
        ("lib/none.so", "there is no file of kernels 'lib/none.so'", "name a library, program or rlib"),
        ("some_package", "there is no file of kernels 'some_package'", "name a library, program or rlib"),
        (
            f"{LIBRARY}#other",
            f"'{LIBRARY}' has no kernels of the package 'other'",
            "packages are some-package",
        ),
    ],
)
def test_a_file_that_cannot_be_taken(make, kernels: str, what: str, hint: str) -> None:
    error = refused(make(Blob(), kernels=kernels))
    assert isinstance(error, SettingsError)
    assert (error.what, error.where) == (what, "[tool.rustcuda] kernels")
    assert hint in error.hint


def test_links_in_a_circle(make) -> None:
    project = make(kernels="circle")
    (project / "circle").symlink_to("circle")
    assert refused(project).what == "there is no file of kernels 'circle'"


def test_a_link_that_leads_outside(make, tmp_path: Path) -> None:
    project = make(Blob())
    (project / LIBRARY).rename(tmp_path / "_native.so")
    (project / LIBRARY).symlink_to(tmp_path / "_native.so")
    assert "is outside the project" in refused(project).what


def test_a_file_without_kernels_of_cuda_oxide(make) -> None:
    project = make()
    for content, what in (
        (elf.object_file(b""), "there is no device code in this file"),
        (ptx(), "cuda-oxide has embedded nothing in this file"),
        (b"text", "this is no wheel, fatbin, cubin, PTX, ELF file or rlib"),
    ):
        (project / LIBRARY).write_bytes(content)
        error = refused(project)
        assert isinstance(error, FormatError)
        assert (error.what, error.where) == (what, str(project / LIBRARY))


@pytest.mark.parametrize(
    ("payloads", "found"),
    [
        ([NVVM_KIND], "NVVM IR"),
        ([LTO_KIND, CUBIN_KIND, LTO_KIND], "LTO-IR and cubin"),
        ([], "no code"),
    ],
)
def test_what_is_embedded_is_no_ptx(make, payloads: list[int], found: str) -> None:
    blob = Blob(payloads=tuple((kind, "file", b"code") for kind in payloads))
    error = refused(make(blob))
    assert isinstance(error, CompileError)
    assert error.what == f"cuda-oxide embedded {found} for the package 'some-package', and no PTX"
    assert "llc, opt, llvm-link and libdevice" in error.hint


def test_other_code_beside_ptx_is_passed_over(make) -> None:
    payloads = ((NVVM_KIND, "a.ll", b"code"), (PTX_KIND, "a.ptx", ptx()), (CUBIN_KIND, "a.cubin", b"code"))
    assert images(build(make(Blob(payloads=payloads)))) == ["sass 8.0"]


@pytest.mark.parametrize("others", [[NVVM_KIND], [CUBIN_KIND, LTO_KIND], []])
def test_bundles_of_other_code_beside_one_of_ptx_are_passed_over(make, others: list[int]) -> None:
    """Whatever they are for, and whichever comes first."""
    payloads = tuple((kind, "file", b"code") for kind in others)
    other = Blob(target="sm_90", payloads=payloads, entries=((1, "elsewhere", None),))
    for blobs in ((Blob(), other), (other, Blob())):
        assert images(build(make(*blobs))) == ["sass 8.0"]


@pytest.mark.parametrize(
    ("target", "named"), [("sm_90", "sm_80"), ("sm_100", "sm_100a"), ("sm_90a", "sm_90"), ("none", "sm_80")]
)
def test_a_target_that_the_ptx_contradicts(make, target: str, named: str) -> None:
    project = make(of(ptx(named), target=target))
    error = refused(project)
    assert error.what == f"the bundle is for {target} by its own word, but its PTX is for {named}"
    assert error.where == f"{project / LIBRARY}, bundle some-package"


def test_both_spellings_of_a_target(make) -> None:
    assert images(build(make(of(ptx(), target="compute_80")))) == ["sass 8.0"]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (["store", "gone"], "lacks kernels that its bundle lists: gone"),
        (["gone"], "has kernels that its bundle does not list: store"),
        (["store"], ""),
        ([], ""),
    ],
)
def test_kernels_that_the_ptx_contradicts(make, capsys, entries: list[str], said: str) -> None:
    listed = (*((1, name, None) for name in entries), (2, "inlined", None))
    assert images(build(make(of(ptx(), entries=listed)))) == ["sass 8.0"]
    warnings = capsys.readouterr().err
    assert ("its bundle" in warnings) == bool(said)
    assert f"warning: the PTX of the package 'some-package' for sm_80 {said}" in warnings or not said


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (ptx("sm_"), "the PTX is for no GPU: its .target is 'sm_'"),
        (ptx("compute_80"), "the PTX is for no GPU: its .target is 'compute_80'"),
        (ptx().replace(b".u32 store_param_2", b".pred store_param_2"), "cannot read the PTX parameter"),
        (b"no PTX", "the compiler's output is not PTX: it has no .version and .target"),
        (ptx("sm_999"), "'sm_999' is not a capability"),
        (ptx().replace(b".param .u64 store_param_1", b".param .nothing"), "cannot read the PTX parameter"),
        (ptx() + ptx()[ptx().index(b".visible") :], "the PTX defines a kernel twice"),
        (ptx(kernel="turn_TID_" + "a" * 32) + ptx(kernel="turn"), "refused the PTX"),
        (ptx()[: ptx().index(b".visible")], "there are no kernels in the PTX that Python could launch"),
        (ptx().replace(b"ret;", b"return;"), "refused the PTX for sm_80, kernel 'store'"),
    ],
)
def test_damaged_ptx(make, code: bytes, what: str) -> None:
    """One error that says where, whatever is wrong with the text."""
    project = make(of(code))
    error = refused(project)
    assert what in error.what
    # ptxas has read a copy.
    assert str(project / LIBRARY) in error.where or (what.startswith("refused") and error.where)


def test_a_damaged_bundle(make) -> None:
    project = make(Blob())
    data = (project / LIBRARY).read_bytes()
    (project / LIBRARY).write_bytes(data.replace(b"OXIDEART\x01", b"OXIDEART\x09"))
    error = refused(project)
    assert "the bundle has the unknown version 9" in error.what
    assert error.where == f"{project / LIBRARY}, .oxart, blob at byte 0"


def test_several_packages(make) -> None:
    blobs = [of(ptx(kernel=f"of_{name}"), name=name) for name in ("first", "second-one")]
    error = refused(make(*blobs))
    assert error.what == f"'{LIBRARY}' has kernels of several packages"
    assert f'its packages are first, second-one; name one, e.g. kernels = "{LIBRARY}#first"' in error.hint


def test_several_bundles_for_one_capability(make) -> None:
    """As where a package has both a library and a program with kernels."""
    project = make(of(ptx(kernel="a")), of(ptx(kernel="b")))
    assert "'some-package' has several bundles of PTX for 8.0" in refused(project).what


@pytest.mark.parametrize("kind", ["rlib", "wheel"])
def test_other_files_than_libraries(make, host: Host, kind: str) -> None:
    project = make(Blob())
    path = project / f"file.{kind}"
    if kind == "rlib":
        shutil.copy(host.rlib("l.rlib", host.folder / "o0.embed.o"), path)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(project / LIBRARY, "other/_native.so")
    assert images(build(project, kernels=path.name)) == ["sass 8.0"]


def test_one_bundle_linked_twice(make) -> None:
    assert images(build(make(Blob(), Blob()))) == ["sass 8.0"]


@pytest.mark.parametrize("name", ["c#", "#some-package"])
def test_a_number_sign_in_a_path(make, name: str) -> None:
    project = make(Blob())
    (project / name).mkdir()
    shutil.move(project / LIBRARY, project / name / "a.so")
    assert images(build(project, kernels=f"{name}/a.so")) == ["sass 8.0"]
    assert images(build(project, kernels=f"{name}/a.so#some-package")) == ["sass 8.0"]


def test_crate_and_kernels_at_once() -> None:
    with pytest.raises(
        SettingsError, match="from a 'crate' or from a file, 'kernels', not from both"
    ) as caught:
        read_settings({"crate": "k"}, {}, {"RUSTCUDA_KERNELS": "a.so"})
    assert caught.value.where == "[tool.rustcuda] crate; environment variable RUSTCUDA_KERNELS"
    with pytest.raises(SettingsError, match="not from both") as caught:
        read_settings({"crates": [{"crate": "k", "kernels": "a.so"}]}, {}, {})
    assert "[[tool.rustcuda.crates]] number 1" in caught.value.where


def test_kernels_of_several_crates_at_once() -> None:
    with pytest.raises(SettingsError, match="'kernels' cannot be set for several crates at once"):
        read_settings({"kernels": "a.so", "crates": [{"crate": "k"}]}, {}, {})


# --- wheels ----------------------------------------------------------------------------------------------


def wheel(project: Path, monkeypatch: pytest.MonkeyPatch, capabilities: str = "8.0") -> dict[str, bytes]:
    """The files of the wheel that our hook makes."""
    out = project.parent / "wheels"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    monkeypatch.chdir(project)
    with zipfile.ZipFile(out / backend.build_wheel(str(out), {"capabilities": capabilities})) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def embedded(data: bytes) -> list[bytes]:
    """What is in the sections that cuda-oxide embeds, byte for byte."""
    found = elf_reader.read(data, elf_reader.read_header(data, "file"), "file")
    return [data[section.span] for section in found.sections if section.name == oxart.SECTION]


def runs(path: Path) -> bool:
    """Whether a library is loaded, its function works, and its own pointer leads into the section."""
    library = ctypes.CDLL(str(path))
    symbols = [name for name in ("o0", "o1") if hasattr(library, f"cuda_oxide_artifact_anchor_{name}_place")]
    place = library[f"cuda_oxide_artifact_anchor_{symbols[0]}_place"]
    place.restype = ctypes.c_void_p
    first = ctypes.c_ubyte.from_address(place()).value
    return bool(library.answer(1) == 43 and first == 0)


@pytest.mark.parametrize("blobs", [1, 2])
def test_a_library_in_the_wheel_is_stripped_and_runs(
    make, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], blobs: int
) -> None:
    project = make(*([Blob()] * blobs))
    whole = (project / LIBRARY).read_bytes()
    files = wheel(project, monkeypatch, "8.0;9.0+PTX")
    (before,), (after,) = embedded(whole), embedded(files[LIBRARY])
    assert oxart.read(before)
    assert oxart.read(after) == ()
    assert after == bytes(len(before))
    # All else is the same, byte for byte.
    assert files[LIBRARY] == whole.replace(before, after)
    assert (
        f"{LIBRARY} goes into the wheel without its {len(before)} bytes of kernels" in capfd.readouterr().err
    )
    assert [image.kind for image in fatbin.read(files["some_package/kernels_cuda.fatbin"]).images] == [
        *("sass", "sass", "ptx")
    ]
    loaded = project.parent / "stripped.so"
    loaded.write_bytes(files[LIBRARY])
    assert runs(loaded)
    assert (project / LIBRARY).read_bytes() == whole, "the project's own file stays as it is"


def test_a_library_that_is_no_longer_taken_from_is_whole_again(
    make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where setuptools itself is the backend, it keeps its build tree and copies only what is newer."""
    project = make(Blob(), settings='capabilities = "8.0"')
    pyproject = project / "pyproject.toml"
    text = pyproject.read_text(encoding="utf-8").replace('"rustcuda_backend"', '"setuptools.build_meta"')
    head, ours = text.split("[tool.rustcuda]")
    monkeypatch.chdir(project)
    found = []
    for name, content in (
        ("with", f"{head}[tool.rustcuda]{ours}"),
        ("again", f"{head}[tool.rustcuda]{ours}"),
        ("without", f'{head}package-data = {{ some_package = ["*.so"] }}\n'),
    ):
        pyproject.write_text(content, encoding="utf-8")
        (tmp_path / name).mkdir()
        argv = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / name]
        finished = process.run(argv)
        assert finished.ok, finished.stdout + finished.stderr
        (path,) = (tmp_path / name).iterdir()
        with zipfile.ZipFile(path) as archive:
            found.append(any(embedded(archive.read(LIBRARY))[0]))
    assert found == [False, False, True]


def test_no_ptx_is_in_the_wheel_unless_asked_for(make, monkeypatch: pytest.MonkeyPatch) -> None:
    files = wheel(make(Blob()), monkeypatch)
    assert not any(b".target sm_" in data or b"OXIDEART" in data for data in files.values())


def test_a_library_whose_kernels_are_not_all_taken_keeps_them(
    make, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    blobs = [of(ptx(kernel=f"of_{name}"), name=name) for name in ("first", "second")]
    project = make(*blobs, kernels=f"{LIBRARY}#second")
    files = wheel(project, monkeypatch)
    assert files[LIBRARY] == (project / LIBRARY).read_bytes()
    assert f"{LIBRARY} keeps its kernels in the wheel, since nothing takes those of the packages first" in (
        capfd.readouterr().err
    )


def test_several_tables(make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packages of one library, and a crate that is compiled here."""
    tables = "[[tool.rustcuda.crates]]\n" + "[[tool.rustcuda.crates]]\n".join(
        (
            f'kernels = "{LIBRARY}#first"\n',
            f'kernels = "{LIBRARY}#second"\nmodule = "some_package.two"\ncapabilities = "9.0"\n',
            'crate = "compiled"\nmodule = "some_package.three"\n',
        )
    )
    blobs = [of(ptx(kernel=f"of_{name}"), name=name) for name in ("first", "second")]
    project = make(*blobs, tables='capabilities = "8.0"\n' + tables)
    (project / "compiled/src").mkdir(parents=True)
    (project / "compiled/Cargo.toml").write_text(MANIFEST, encoding="utf-8")
    (project / "compiled/src/lib.rs").write_text(PLAIN_HEAD + PLAIN_KERNEL, encoding="utf-8")
    monkeypatch.delenv("RUSTCUDA_CAPABILITIES", raising=False)
    out = project.parent / "out"
    out.mkdir()
    monkeypatch.chdir(project)
    with zipfile.ZipFile(out / backend.build_wheel(str(out))) as archive:
        stubs = {
            name: archive.read(f"some_package/{name}.pyi").decode()
            for name in ("kernels_cuda", "two", "three")
        }
        assert oxart.read(embedded(archive.read(LIBRARY))[0]) == ()
    found = {name: re.findall(r"^(\w+): _", text, re.MULTILINE) for name, text in stubs.items()}
    assert found == {"kernels_cuda": ["of_first"], "two": ["of_second"], "three": ["store"]}


def test_two_tables_with_one_module(make) -> None:
    tables = "".join(f'[[tool.rustcuda.crates]]\nkernels = "{name}"\n' for name in ("a.so", "b.so"))
    settings = read_settings(read_table(make(tables=tables)) or {}, {}, {})
    with pytest.raises(SettingsError, match=r"of 'a\.so' and of 'b\.so' go into one module") as caught:
        modules(settings, ["some_package"])
    assert "kernels" in caught.value.where


def test_a_wheel_from_the_sdist(make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Outside the package, named by a link: what an sdist has, and what builds from it."""
    project = make(Blob(), kernels="lib/current.so")
    (project / "lib").mkdir()
    shutil.move(project / LIBRARY, project / "lib/built-1.so")
    (project / "lib/current.so").symlink_to("built-1.so")
    monkeypatch.chdir(project)
    (tmp_path / "sdists").mkdir()
    name = backend.build_sdist(str(tmp_path / "sdists"))
    with tarfile.open(tmp_path / "sdists" / name) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    files = wheel(unpacked, monkeypatch)
    assert files["some_package/kernels_cuda.fatbin"] == build(project).fatbin
    assert not [file for file in files if file.endswith(".so")]


@pytest.mark.filterwarnings("ignore:Editable installation")
def test_an_editable_install(make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The library stays whole, and its change is noticed."""
    project = make(Blob())
    whole = (project / LIBRARY).read_bytes()
    monkeypatch.chdir(project)
    (tmp_path / "out").mkdir()
    backend.build_editable(str(tmp_path / "out"), {"capabilities": "8.0"})
    assert (project / LIBRARY).read_bytes() == whole
    loader = (project / "some_package/kernels_cuda.py").read_text(encoding="utf-8")
    assert f"'{LIBRARY}', {len(whole)}," in loader


# --- stripping -------------------------------------------------------------------------------------------


def test_every_section_is_stripped(host: Host) -> None:
    """An object file that linkers have made of others with -r can have several."""
    path = host.object_file("o0", Blob().data())
    source = path.with_suffix(".s")
    again = f'.section .oxart,"a",@progbits,unique,1\n.incbin "{host.folder / "o0.blob"}"\n'
    text = (host.folder / "o0.s").read_text(encoding="utf-8")
    source.write_text(text + again, encoding="utf-8")
    host._gcc(path, "-c", source)
    before = embedded(path.read_bytes())
    assert len(before) == 2
    assert strip(path) == sum(map(len, before))
    assert embedded(path.read_bytes()) == [bytes(len(each)) for each in before]
    with pytest.raises(FormatError, match="no device code"):
        containers.pieces(path)


def test_a_program_runs_after_stripping(host: Host) -> None:
    path = host.program("program", host.object_file("o0", Blob().data()))
    assert process.run([path]).returncode == 0
    path.chmod(0o755)
    assert strip(path) == len(Blob().data())
    assert path.stat().st_mode & 0o777 == 0o755
    # It misses the blob's first byte, so that it has run to its end.
    assert process.run([path]).returncode == 1


def test_nothing_to_strip(host: Host) -> None:
    library = host.library("l.so", host.object_file("o0", bytes(64)))
    rlib = host.rlib("l.rlib", host.object_file("o1", Blob().data()))
    for path in (library, rlib):
        before = path.read_bytes()
        assert strip(path) == 0
        assert path.read_bytes() == before


def test_a_section_that_overlaps_another_is_left_alone(host: Host) -> None:
    path = host.object_file("o0", Blob().data())
    data = bytearray(path.read_bytes())
    header = elf_reader.read_header(bytes(data), "file")
    sections = elf_reader.read(bytes(data), header, "file").sections
    (number,) = [index for index, each in enumerate(sections) if each.name == b".shstrtab"]
    start = header.offset + 64 * number + 24
    (own,) = [each for each in sections if each.name == oxart.SECTION]
    size = sections[number].size
    data[own.span.start : own.span.start + size] = data[sections[number].span]
    data[start : start + 8] = own.span.start.to_bytes(8, "little")
    path.write_bytes(bytes(data))
    with pytest.raises(FormatError, match=r"the section \.oxart overlaps the section '\.shstrtab'"):
        strip(path)
    assert path.read_bytes() == bytes(data)


# --- commands --------------------------------------------------------------------------------------------


def test_doctor_looks_into_the_file(make, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    project = make(Blob(), settings='capabilities = "8.0;9.0"')
    monkeypatch.chdir(project)
    main(["doctor"])
    said = capsys.readouterr().out
    assert re.search(
        rf"^kernels +ok +{re.escape(str(project / LIBRARY))}, package some-package, PTX for 8\.0$",
        said,
        re.MULTILINE,
    )
    assert re.search(r"^capabilities +ok +8\.0 9\.0 from", said, re.MULTILINE)
    assert not re.search(r"^(Rust|cargo|core) ", said, re.MULTILINE), "no Rust is needed"
    main(["doctor", "-C", "capabilities=7.5"])
    assert "cannot be assembled for 7.5" in capsys.readouterr().out
    (project / LIBRARY).unlink()
    assert main(["doctor"]) == 1
    assert f"there is no file of kernels '{LIBRARY}'" in capsys.readouterr().out


def test_there_is_no_crate_to_lend_to(make, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.chdir(make(Blob()))
    with pytest.raises(SystemExit, match="1"):
        main(["lend"])
    assert "has no kernel crate that a device crate could be lent to" in capsys.readouterr().err


# --- a real file -----------------------------------------------------------------------------------------


def test_kernels_that_cuda_oxide_has_compiled(make, ferrum_library: bytes) -> None:
    """The wheel ferrum-gpu, made by its author with cuda-oxide: 15 kernels of FFTs, PTX for 8.0."""
    project = make()
    (project / LIBRARY).write_bytes(ferrum_library)
    kernels = build(project, "8.0;9.0;10.0")
    assert images(kernels) == ["sass 8.0", "sass 9.0", "sass 10.0"]
    found = re.findall(r"^(\w+): _", kernels.loader.stub, re.MULTILINE)
    assert len(found) == 15
    assert {"fft_c2c_4096_r16s", "cmul_split", "transpose_complex_pow2"} <= set(found)


LOAD = """
import importlib.util, sys
from importlib.machinery import ExtensionFileLoader
loader = ExtensionFileLoader("_native", sys.argv[1])
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_native", loader))
loader.exec_module(module)
print(module.version())
"""


def test_a_real_library_is_stripped_and_runs(ferrum_library: bytes, tmp_path: Path) -> None:
    path = tmp_path / "_native.abi3.so"
    path.write_bytes(ferrum_library)
    assert strip(path) == 284_048
    with pytest.raises(FormatError, match="no device code"):
        containers.pieces(path)
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the library is for Linux on x86-64")
    finished = process.run([sys.executable, "-c", LOAD, path])
    assert (finished.stdout, finished.stderr) == ("0.3.0\n", "")
