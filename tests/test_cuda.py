"""Finding and calling NVIDIA's real tools of both CUDA versions."""

import dataclasses
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from cuda_wheels import KERNELS, VERSIONS, capabilities, cuobjdump, ptx, ptxas, wheel_file

from rustcuda_backend import cuda, fatbin, launch_bounds, process, toolkit
from rustcuda_backend.capability import Capability, parse_list
from rustcuda_backend.cubin import Cubin
from rustcuda_backend.cuda_versions import CUDA_VERSIONS
from rustcuda_backend.errors import AssembleError, CapabilityError, ToolError

CUDA12, CUDA13 = CUDA_VERSIONS["12.9"], CUDA_VERSIONS["13.0"]
each_version = pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)


@pytest.fixture(autouse=True)
def _only_what_the_tests_install(monkeypatch, tmp_path):
    """No toolkit of this machine; the wheels' folders where the environment names them."""
    monkeypatch.setattr(toolkit, "DEFAULT_TOOLKIT", tmp_path / "usr-local-cuda")
    folders = [os.environ.get(f"RUSTCUDA_TEST_CUDA{name}") for name in ("129", "130")]
    monkeypatch.setattr(sys, "path", [*filter(None, folders), *sys.path])


@pytest.fixture
def without_wheels(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])


def tools_of(version):
    ptxas(version)  # Skips where the wheels are not installed.
    return cuda.find_tools(version, environ={})


def make_toolkit(root, version, *, lacks=()):
    """A toolkit laid out as NVIDIA's installer does, of the wheels' files."""
    tools = tools_of(version)
    library = "lib64/" + tools.packer.name
    for name, source in {
        "bin/ptxas": tools.ptxas,
        "nvvm/libdevice/libdevice.10.bc": tools.libdevice,
        library: tools.packer,
    }.items():
        if not any(lack in name for lack in lacks):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(source)
    return root


def copied_toolkit(root, version, *, release=""):
    """A toolkit whose ptxas is a program of its own; with another release than the wheel's if asked."""
    tools = tools_of(version)
    make_toolkit(root, version, lacks=["ptxas"])
    script = root / "bin" / "ptxas"
    script.parent.mkdir()
    said = f"Cuda compilation tools, release {release.rpartition('.')[0]}, V{release}"
    version_line = f'[ "$1" = --version ] && echo "{said}" && exit\n' if release else ""
    script.write_text(f'#!/bin/sh\n{version_line}exec {tools.ptxas} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return root


class TestFindTools:
    @each_version
    def test_wheels_of_the_version_asked_for(self, version):
        tools = tools_of(version)
        assert tools.version == version
        assert tools.source == "NVIDIA's wheels"
        assert tools.ptxas_version == version.wheels[0].split("==")[1]
        assert tools.ptxas == ptxas(version)
        assert tools.libdevice.read_bytes()[:2] == b"BC"
        assert tools.packer.name == f"libnvfatbin.so.{version.name.split('.')[0]}"
        assert tools.libdevice.is_relative_to(tools.ptxas.parents[1])

    @each_version
    def test_setting(self, version, tmp_path):
        root = make_toolkit(tmp_path / "toolkit", version)
        # A symbolic link leads to the toolkit that it points into.
        link = tmp_path / "links" / "ptxas"
        link.parent.mkdir()
        (root / "bin" / "ptxas").unlink()
        shutil.copy(ptxas(version), root / "bin" / "ptxas")
        link.symlink_to(root / "bin" / "ptxas")
        tools = cuda.find_tools(version, ptxas=str(link), environ={"CUDA_HOME": "/nowhere"})
        assert tools.ptxas == link
        assert tools.source == "setting ptxas"
        assert tools.libdevice == root / "nvvm" / "libdevice" / "libdevice.10.bc"
        assert tools.packer.parent == root / "lib64"

    def test_setting_by_name(self, tmp_path):
        root = copied_toolkit(tmp_path, CUDA12)
        tools = cuda.find_tools(CUDA12, ptxas="ptxas", environ={"PATH": str(root / "bin")})
        assert tools.ptxas == root / "bin" / "ptxas"

    def test_setting_without_a_toolkit_takes_the_rest_further_on(self, tmp_path):
        wheels = tools_of(CUDA12)
        shutil.copy(wheels.ptxas, tmp_path / "ptxas")
        tools = cuda.find_tools(CUDA12, ptxas=str(tmp_path / "ptxas"), environ={})
        assert tools.ptxas == tmp_path / "ptxas"
        assert (tools.libdevice, tools.packer) == (wheels.libdevice, wheels.packer)

    def test_setting_that_is_no_file(self):
        with pytest.raises(ToolError, match="names '/nowhere/ptxas', which is no file"):
            cuda.find_tools(CUDA12, ptxas="/nowhere/ptxas", environ={})

    @pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
    def test_environment(self, variable, tmp_path):
        root = make_toolkit(tmp_path, CUDA12)
        tools = cuda.find_tools(CUDA12, environ={variable: str(root)})
        assert tools.ptxas == root / "bin" / "ptxas"
        assert tools.source == f"{variable}={root}"

    def test_home_before_path(self, tmp_path):
        root = make_toolkit(tmp_path, CUDA12)
        tools = cuda.find_tools(CUDA12, environ={"CUDA_HOME": str(root), "CUDA_PATH": "/nowhere"})
        assert tools.ptxas == root / "bin" / "ptxas"

    @pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
    @pytest.mark.parametrize(
        ("lacks", "said"),
        [
            (["ptxas"], "no ptxas"),
            (["libdevice"], r"no libdevice\.10\.bc"),
            (["nvfatbin"], "no libnvfatbin or fatbinary"),
            (["ptxas", "libdevice"], r"no ptxas and no libdevice\.10\.bc"),
        ],
    )
    def test_environment_that_is_broken(self, variable, lacks, said, tmp_path):
        root = make_toolkit(tmp_path, CUDA12, lacks=lacks)
        with pytest.raises(ToolError, match=f"{variable} names a CUDA toolkit that has {said}") as caught:
            cuda.find_tools(CUDA12, environ={variable: str(root)})
        assert caught.value.where == f"{variable}={root}"
        assert f"unset {variable}" in caught.value.hint

    def test_named_toolkit_of_another_supported_version(self, tmp_path):
        root = make_toolkit(tmp_path, CUDA13)
        tools = cuda.find_tools(CUDA12, environ={"CUDA_HOME": str(root)})
        # The driver floors are those of the ptxas that writes the cubins.
        assert tools.version == CUDA13
        assert tools.source == f"CUDA_HOME={root}, CUDA 13.0 in place of 12.9"

    @pytest.mark.parametrize(("release", "expected"), [("13.2.51", CUDA13), ("12.10.1", CUDA12)])
    def test_named_toolkit_that_is_newer(self, release, expected, tmp_path):
        root = copied_toolkit(tmp_path, expected, release=release)
        tools = cuda.find_tools(CUDA12, environ={"CUDA_HOME": str(root)})
        assert (tools.version, tools.ptxas_version) == (expected, release)

    @pytest.mark.parametrize("release", ["12.4.131", "11.8.89", "14.0.1"])
    def test_named_toolkit_that_does_not_fit(self, release, tmp_path):
        root = copied_toolkit(tmp_path, CUDA12, release=release)
        with pytest.raises(ToolError, match=f"ptxas {release} is of no supported CUDA version") as caught:
            cuda.find_tools(CUDA12, environ={"CUDA_HOME": str(root)})
        assert caught.value.where == f"CUDA_HOME={root}: {root / 'bin' / 'ptxas'}"
        assert "12.9 or 13.0" in caught.value.hint

    def test_path(self, tmp_path, monkeypatch):
        root = copied_toolkit(tmp_path, CUDA13)
        monkeypatch.setattr(sys, "path", [])
        tools = cuda.find_tools(CUDA13, environ={"PATH": str(root / "bin")})
        assert (tools.ptxas, tools.source) == (root / "bin" / "ptxas", "PATH")
        assert tools.libdevice.is_relative_to(root)

    def test_default_toolkit(self, tmp_path, monkeypatch):
        root = copied_toolkit(tmp_path, CUDA13)
        monkeypatch.setattr(sys, "path", [])
        monkeypatch.setattr(toolkit, "DEFAULT_TOOLKIT", root)
        tools = cuda.find_tools(CUDA13, environ={})
        assert (tools.ptxas, tools.source) == (root / "bin" / "ptxas", str(root))

    def test_one_that_is_merely_there_must_be_of_the_version_asked_for(self, tmp_path, monkeypatch):
        root = copied_toolkit(tmp_path, CUDA13)
        monkeypatch.setattr(sys, "path", [])
        with pytest.raises(ToolError, match=r"there is no ptxas of CUDA 12\.9") as caught:
            cuda.find_tools(CUDA12, environ={"PATH": str(root / "bin")})
        assert f"does not fit: {root / 'bin' / 'ptxas'} (13.0." in caught.value.where
        assert caught.value.hint == f"pip install {' '.join(CUDA12.wheels)}"

    @pytest.mark.usefixtures("without_wheels")
    @each_version
    def test_nothing_there(self, version):
        with pytest.raises(ToolError) as caught:
            cuda.find_tools(version, environ={})
        assert caught.value.hint == f"pip install {' '.join(version.wheels)}"

    def test_no_packer_anywhere(self, tmp_path, monkeypatch):
        root = make_toolkit(tmp_path / "toolkit", CUDA12, lacks=["ptxas", "nvfatbin"])
        (root / "bin").mkdir()
        shutil.copy(ptxas(CUDA12), root / "bin" / "ptxas")
        monkeypatch.setattr(sys, "path", [])
        with pytest.raises(
            ToolError, match=r"there is a ptxas .*, but no libnvfatbin or fatbinary"
        ) as caught:
            cuda.find_tools(CUDA12, ptxas=str(root / "bin" / "ptxas"), environ={})
        assert caught.value.hint.startswith("pip install nvidia-cuda-nvcc-cu12==")

    def test_packer_of_a_toolkit_that_does_not_fit(self, tmp_path, monkeypatch):
        old = copied_toolkit(tmp_path / "old", CUDA12, release="11.8.89")
        shutil.copy(ptxas(CUDA12), tmp_path / "ptxas")
        monkeypatch.setattr(sys, "path", [])
        monkeypatch.setattr(toolkit, "DEFAULT_TOOLKIT", old)
        with pytest.raises(ToolError, match=r"no libdevice\.10\.bc and no libnvfatbin"):
            cuda.find_tools(CUDA12, ptxas=str(tmp_path / "ptxas"), environ={})

    def test_fatbinary_where_the_library_is_missing(self, tmp_path):
        root = make_toolkit(tmp_path, CUDA13, lacks=["nvfatbin"])
        fatbinary = tools_of(CUDA13).ptxas.parent / "fatbinary"
        (root / "bin" / "fatbinary").symlink_to(fatbinary)
        tools = cuda.find_tools(CUDA13, environ={"CUDA_HOME": str(root)})
        assert tools.packer == root / "bin" / "fatbinary"

    def test_windows_names(self, tmp_path):
        for name in (
            "bin/x64/ptxas.exe",
            "bin/x64/nvfatbin_130_0.dll",
            "nvvm/libdevice/libdevice.10.bc",
        ):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        place = toolkit._toolkit("test", toolkit._root(tmp_path / "bin/x64/ptxas.exe"))
        assert place.missing == []
        assert place.packer == tmp_path / "bin/x64/nvfatbin_130_0.dll"

    def test_wheel_of_another_major_version(self, tmp_path, monkeypatch):
        record = tmp_path / "nvidia_cuda_nvcc-14.1.0.dist-info"
        (tmp_path / "nvidia" / "bin").mkdir(parents=True)
        (tmp_path / "nvidia" / "bin" / "ptxas").touch()
        record.mkdir()
        (record / "METADATA").write_text("Name: nvidia-cuda-nvcc\nVersion: 14.1.0\n", encoding="utf-8")
        (record / "RECORD").write_text("nvidia/bin/ptxas,,\n", encoding="utf-8")
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        with pytest.raises(ToolError, match=r"no ptxas of CUDA 13\.0"):
            cuda.find_tools(CUDA13, environ={})

    @pytest.mark.usefixtures("without_wheels")
    def test_wheel_whose_ptxas_is_not_executable(self, tmp_path):
        record = tmp_path / "nvidia_cuda_nvcc-13.0.88.dist-info"
        executable = tmp_path / "nvidia" / "cu13" / "bin" / "ptxas"
        executable.parent.mkdir(parents=True)
        executable.write_text("#!/bin/sh\n", encoding="utf-8")
        executable.chmod(0o644)
        record.mkdir()
        (record / "METADATA").write_text("Name: nvidia-cuda-nvcc\nVersion: 13.0.88\n", encoding="utf-8")
        (record / "RECORD").write_text("nvidia/cu13/bin/ptxas,,\nnvidia/gone,,\n", encoding="utf-8")
        with pytest.raises(ToolError, match="ptxas may not be executed") as caught:
            cuda.find_tools(CUDA13, environ={})
        assert caught.value.where == str(executable)
        assert caught.value.hint == f"chmod +x {executable}"

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("not a program", "does not start: Exec format error"),
            ("#!/bin/sh\necho\necho hello\necho more\n", "asked for its version, it says 'hello'"),
            ("#!/bin/sh\necho wrong >&2\nexit 1\n", "asked for its version, it says 'wrong'"),
            ("#!/bin/sh\nexit 3\n", "asked for its version, it says 'exit status 3'"),
        ],
    )
    def test_ptxas_that_is_none(self, content, said, tmp_path):
        executable = tmp_path / "ptxas"
        executable.write_text(content, encoding="utf-8")
        executable.chmod(0o755)
        with pytest.raises(ToolError) as caught:
            cuda.find_tools(CUDA12, ptxas=str(executable), environ={})
        assert caught.value.what.endswith(said)
        assert caught.value.where == str(executable)

    def test_another_program(self):
        program = shutil.which("ls")
        with pytest.raises(ToolError, match="this is not ptxas") as caught:
            cuda.find_tools(CUDA12, ptxas=program, environ={})
        assert "\n" not in caught.value.what
        assert "set ptxas to the executable" in caught.value.hint


class TestRequiredWheels:
    @each_version
    def test_pinned(self, version):
        assert cuda.required_wheels(version, ptxas="", environ={}) == list(version.wheels)
        assert cuda.required_wheels(version, ptxas="", environ={"CUDA_HOME": ""}) == list(version.wheels)

    @pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
    def test_none_for_a_named_toolkit(self, variable):
        assert cuda.required_wheels(CUDA12, ptxas="", environ={variable: "/opt/cuda"}) == []

    def test_setting(self, tmp_path):
        whole = str(copied_toolkit(tmp_path / "toolkit", CUDA12) / "bin" / "ptxas")
        assert cuda.required_wheels(CUDA12, ptxas=whole, environ={}) == []
        # A ptxas alone needs the packer and libdevice of the wheels.
        alone = shutil.copy(ptxas(CUDA12), tmp_path / "ptxas")
        assert cuda.required_wheels(CUDA12, ptxas=str(alone), environ={}) == list(CUDA12.wheels)


class TestCheckCapabilities:
    @each_version
    def test_all_of_the_version(self, version):
        cuda.check_capabilities(tools_of(version), capabilities(version), "capabilities")

    @each_version
    def test_unknown_ones(self, version):
        other = next(other for other in VERSIONS if other != version)
        for base in version.unknown:
            with pytest.raises(CapabilityError) as caught:
                cuda.check_capabilities(
                    tools_of(version), [Capability(9, 0), Capability(*base)], "TORCH_CUDA_ARCH_LIST"
                )
            error = caught.value
            assert f"does not know capability {base[0]}.{base[1]}" in error.what
            assert tools_of(version).ptxas_version in error.what
            assert error.where == "TORCH_CUDA_ARCH_LIST"
            assert f'cuda-version = "{other.name}"' in error.hint
            assert "7.5 8.0 8.6 8.7" in error.hint

    def test_one_that_only_the_version_in_use_should_know(self):
        # Some newer ptxas has dropped 7.5: advising a version that lacks it as well would be no help.
        tools = dataclasses.replace(tools_of(CUDA13), ptxas=Path("/bin/echo"), version=CUDA13)
        with pytest.raises(CapabilityError) as caught:
            cuda.check_capabilities(tools, parse_list("8.8"), "here")
        assert caught.value.hint.startswith("leave it out")


@each_version
class TestAssemble:
    def test_every_capability(self, version, tmp_path):
        tools = tools_of(version)
        for capability in capabilities(version):
            keep = tmp_path / "kept" / f"{capability.sm}.ptx"
            module = ptx(capability)
            cubin = cuda.assemble(tools, module, arguments=(), keep=keep)
            assert cubin.capability == capability
            assert [kernel.name for kernel in cubin.kernels] == ["saxpy", "other"]
            assert all(kernel.registers > 0 for kernel in cubin.kernels)
            assert cubin.messages == ()
            assert keep.read_text(encoding="utf-8") == module.text

    def test_same_bytes_anywhere(self, version, tmp_path):
        tools, module = tools_of(version), ptx("9.0a")
        one = cuda.assemble(tools, module, arguments=(), keep=tmp_path / "one" / "a.ptx")
        two = cuda.assemble(tools, module, arguments=(), keep=tmp_path / "two" / "b.ptx")
        assert one == two

    def test_arguments_and_warnings(self, version, tmp_path):
        cubin = cuda.assemble(
            tools_of(version), ptx("9.0"), arguments=["--maxrregcount=16"], keep=tmp_path / "k.ptx"
        )
        assert any("16" in message and "warning" in message for message in cubin.messages)

    def test_the_room_that_launch_bounds_are_held_against_is_its_own(self, version, tmp_path):
        """ptxas warns of just the fewest blocks that no multiprocessor has room for, and ignores them."""
        for capability in capabilities(version):
            blocks, threads = launch_bounds.room(capability)
            asked = {
                "blocks": (16, blocks),
                "threads": (256, threads // 256),
                "more_blocks": (16, blocks + 1),
                "more_threads": (256, threads // 256 + 1),
            }
            kernels = "".join(
                f".visible .entry {name}() .maxntid {most} .minnctapersm {fewest} {{ ret; }}\n"
                for name, (most, fewest) in asked.items()
            )
            module = ptx(capability, kernels, tuple(asked))
            said = cuda.assemble(tools_of(version), module, arguments=(), keep=tmp_path / "k.ptx").messages
            ignored = re.findall(r"for entry (\w+) is out of range. .*minnctapersm", "\n".join(said))
            assert sorted(ignored) == ["more_blocks", "more_threads"], capability

    def test_mistake_in_a_kernel(self, version, tmp_path):
        wrong = KERNELS.replace("mov.u32 %t1, %tid.x;", "mov.u32 %t1, %tid.x;\n\tfrobnicate %t1;")
        with pytest.raises(AssembleError) as caught:
            cuda.assemble(tools_of(version), ptx("9.0", wrong), arguments=(), keep=tmp_path / "k.ptx")
        assert f"ptxas {tools_of(version).ptxas_version} refused the PTX for sm_90" in caught.value.what
        assert "kernel 'saxpy'" in caught.value.what
        assert "'other'" not in caught.value.what
        assert "k.ptx, line 12; error   : Not a name of any known instruction: 'frobn" in caught.value.what
        assert "Ptx assembly aborted due to errors" in caught.value.what
        assert caught.value.where == str(tmp_path / "k.ptx")

    def test_kernel_that_ptxas_names(self, version, tmp_path):
        large = KERNELS.replace(
            ".reg .b32 %t<2>;", ".reg .b32 %t<2>;\n\t.shared .b8 block[1000000];"
        ).replace("mov.u32 %t1, %tid.x;", "mov.u32 %t1, block;")
        with pytest.raises(AssembleError, match="kernel 'saxpy'") as caught:
            cuda.assemble(tools_of(version), ptx("9.0", large), arguments=(), keep=tmp_path / "k.ptx")
        assert "uses too much shared data" in caught.value.what
        assert "Compile time" not in caught.value.what

    @pytest.mark.parametrize(
        "kernels",
        [
            ".visible .func helper()\n{\n\tfrobnicate;\n}\n" + KERNELS,
            KERNELS.replace(".visible .entry other() { ret; }", ".frobnicate\n"),
            ".frobnicate\n" + KERNELS,
        ],
    )
    def test_mistake_outside_kernels(self, version, kernels, tmp_path):
        with pytest.raises(AssembleError, match=r"refused the PTX for sm_90:\n") as caught:
            cuda.assemble(tools_of(version), ptx("9.0", kernels), arguments=(), keep=tmp_path / "k.ptx")
        assert "frobnicate" in caught.value.what

    @pytest.mark.parametrize(("mistakes", "left_out"), [(25, 0), (26, 2), (5000, 4976)])
    def test_many_mistakes(self, version, mistakes, left_out, tmp_path):
        tools = dataclasses.replace(tools_of(version), ptxas=tmp_path / "ptxas")
        said = "".join(f"echo ptxas k.ptx, line 12: {number} >&2\n" for number in range(mistakes))
        tools.ptxas.write_text(f"#!/bin/sh\n{said}echo ptxas fatal: aborted >&2\nexit 1\n", encoding="utf-8")
        tools.ptxas.chmod(0o755)
        with pytest.raises(AssembleError) as caught:
            cuda.assemble(tools, ptx("9.0"), arguments=(), keep=tmp_path / "k.ptx")
        _, first, *rest = caught.value.what.splitlines()
        assert (first, rest[-1]) == ("ptxas k.ptx, line 12: 0", "ptxas fatal: aborted")
        assert len(rest) == (25 if left_out else mistakes)
        assert any(f"... {left_out} more lines" in line for line in rest) == bool(left_out)

    def test_unknown_argument(self, version, tmp_path):
        with pytest.raises(AssembleError, match="Unknown option"):
            cuda.assemble(tools_of(version), ptx("9.0"), arguments=["--frobnicate"], keep=tmp_path / "k.ptx")

    def test_kernel_that_the_arguments_leave_out(self, version, tmp_path):
        with pytest.raises(AssembleError, match="wrote the kernels other for sm_90") as caught:
            cuda.assemble(
                tools_of(version), ptx("9.0"), arguments=["--entry", "other"], keep=tmp_path / "k.ptx"
            )
        assert "defines saxpy other" in caught.value.what

    def test_other_capability_than_asked(self, version, tmp_path):
        with pytest.raises(AssembleError, match="a cubin for sm_90, not sm_80"):
            cuda.assemble(tools_of(version), ptx("8.0"), arguments=["-arch=sm_90"], keep=tmp_path / "k.ptx")

    def test_nothing_written(self, version, tmp_path):
        tools = dataclasses.replace(tools_of(version), ptxas=Path("/bin/false"))
        with pytest.raises(AssembleError, match="exit status 1"):
            cuda.assemble(tools, ptx("9.0"), arguments=(), keep=tmp_path / "k.ptx")


def cubins_of(tools, listed, folder):
    return [
        cuda.assemble(tools, ptx(capability), arguments=(), keep=folder / f"{capability.sm}.ptx")
        for capability in listed
    ]


def packers(version):
    """The tools, once with the library and once with the executable where the wheels have it."""
    tools = tools_of(version)
    yield tools
    executable = wheel_file("nvidia-cuda-nvcc", "/bin/fatbinary", "RUSTCUDA_TEST_CUDA130")
    if executable:
        yield dataclasses.replace(tools, packer=executable)


@each_version
class TestPack:
    def test_every_capability(self, version, tmp_path):
        asked = capabilities(version)
        for tools in packers(version):
            cubins = cubins_of(tools, asked, tmp_path)
            data = cuda.pack(tools, cubins, [ptx(item) for item in asked])
            images = fatbin.read(data).images
            assert [(image.kind, image.capability) for image in images] == [
                *(("sass", item) for item in asked),
                *(("ptx", item) for item in asked),
            ]
            assert [image.data for image in images[: len(asked)]] == [cubin.data for cubin in cubins]
            assert not any(image.compressed for image in images)

    def test_deterministic_and_without_places(self, version, tmp_path):
        for tools in packers(version):
            results = []
            for folder in (tmp_path / "one", tmp_path / "another"):
                cubins = cubins_of(tools, parse_list("8.0;9.0"), folder)
                results.append(cuda.pack(tools, cubins, [ptx("9.0")]))
            assert results[0] == results[1]
            assert str(tmp_path).encode() not in results[0]
            assert b"rustcuda" not in results[0]

    def test_referee(self, version, tmp_path):
        tools = tools_of(version)
        cubins = cubins_of(tools, parse_list("8.0;9.0a;10.0"), tmp_path)
        (tmp_path / "kernels.fatbin").write_bytes(cuda.pack(tools, cubins, [ptx("10.0")]))
        listed = process.run([cuobjdump(), "-lelf", "-lptx", tmp_path / "kernels.fatbin"])
        assert re.findall(r"kernels\.\w+\.\w+", listed.stdout) == [
            "kernels.sm_80.cubin",
            "kernels.sm_90a.cubin",
            "kernels.sm_100.cubin",
            "kernels.sm_100.ptx",
        ]

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text,
            lambda text: "//\n// Generated by LLVM NVPTX Back-End\n//\n\n" + text,
            lambda text: "// .version 3.0\n// .target sm_35\n" + text,
            lambda text: text + "// .version 3.0 .target sm_35\n",
            lambda text: text.replace("mov.u32", "/* from\n.version 1 */ mov.u32"),
            lambda text: text.replace("\n.visible", '\n.file 1 "http://host//a  b/*c*/d.rs"\n.visible', 1),
        ],
    )
    def test_ptx_arrives_whole(self, version, change, tmp_path):
        module = ptx("9.0")
        module = dataclasses.replace(module, text=change(module.text))
        for tools in packers(version):
            (image,) = fatbin.read(cuda.pack(tools, [], [module])).images
            assert image.data.split()[:4] == [b".version", b"8.0", b".target", b"sm_90"]
            assert (b"http://host//a" in image.data) == ("http" in module.text)
            # What was packed is what ptxas takes.
            text = dataclasses.replace(module, text=image.data.decode())
            cuda.assemble(tools, text, arguments=(), keep=tmp_path / "k.ptx")

    def test_ptx_ends_with_a_zero(self, version):
        # cuModuleLoadData reads PTX up to it, whatever the length.
        for tools in packers(version):
            for more in range(8):
                module = ptx("9.0", KERNELS.replace("saxpy", "saxpy" + "y" * more))
                data = cuda.pack(tools, [], [module])
                (image,) = fatbin.read(data).images
                assert data[data.index(image.data) + len(image.data)] == 0

    def test_refused_cubin(self, version, tmp_path):
        for tools in packers(version):
            (cubin,) = cubins_of(tools, parse_list("9.0"), tmp_path)
            wrong = Cubin(Capability(8, 0), cubin.data, ())
            with pytest.raises(AssembleError, match=r"arch does not match|failed to pack"):
                cuda.pack(tools, [wrong], [])

    def test_refused_ptx(self, version):
        for tools in packers(version):
            module = dataclasses.replace(ptx("9.0"), text="no ptx")
            with pytest.raises(AssembleError, match=r"could not find ptx|failed to pack|cannot be read"):
                cuda.pack(tools, [], [module])


def test_packer_that_writes_something_else(tmp_path):
    tools = tools_of(CUDA13)
    cubins = cubins_of(tools, parse_list("9.0"), tmp_path)
    whole = tmp_path / "whole.fatbin"
    whole.write_bytes(cuda.pack(tools, cubins, [ptx("9.0")]))
    fake = tmp_path / "fatbinary"
    fake.write_text(f"#!/bin/sh\ncp {whole} fatbin\n", encoding="utf-8")
    fake.chmod(0o755)
    with pytest.raises(AssembleError, match=r"given sass 9\.0 .* wrote sass 9\.0 .*, ptx 9\.0"):
        cuda.pack(dataclasses.replace(tools, packer=fake), cubins, [])


@pytest.mark.parametrize(
    ("name", "content", "error", "said"),
    [
        ("libnvfatbin.so.12", "no library", ToolError, "libnvfatbin cannot be loaded"),
        ("fatbinary", "no program", ToolError, "fatbinary does not start"),
        ("fatbinary", "#!/bin/sh\nexit 4\n", AssembleError, "failed to pack: exit status 4"),
        ("fatbinary", "#!/bin/sh\necho >fatbin\n", AssembleError, "wrote a fatbin that cannot be read"),
    ],
)
def test_packer_that_is_none(name, content, error, said, tmp_path):
    packer = tmp_path / name
    packer.write_text(content, encoding="utf-8")
    packer.chmod(0o755)
    with pytest.raises(error, match=said):
        cuda.pack(dataclasses.replace(tools_of(CUDA12), packer=packer), [], [ptx("9.0")])
