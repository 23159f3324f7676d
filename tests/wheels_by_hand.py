"""Fatbins, loaders and wheels made without cargo: ptxas and the generator do the real work."""

from __future__ import annotations

import base64
import hashlib
import io
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from cuda_wheels import KERNELS, ptx

from rustcuda_backend import cuda, elf
from rustcuda_backend.capability import Capability, parse_list
from rustcuda_backend.cubin import Cubin
from rustcuda_backend.cuda import CudaTools
from rustcuda_backend.loader.content import LoaderContent
from rustcuda_backend.loader.generate import generate
from rustcuda_backend.signature import KernelSignature, Parameter

SAXPY = KernelSignature("saxpy", (Parameter("out", "pointer", "u32", True, "*mut u32"),), doc="Stores.")
OTHER = KernelSignature("other", ())

ONE_KERNEL = KERNELS[: KERNELS.index(".visible .entry other")]


@cache
def assembled(tools: CudaTools, capability: Capability, kernels: str = KERNELS) -> tuple[Cubin, object]:
    names = tuple(name for name in ("saxpy", "other") if f".entry {name}" in kernels)
    module = ptx(capability, kernels, names)
    with tempfile.TemporaryDirectory() as folder:
        return cuda.assemble(tools, module, arguments=(), keep=Path(folder, "k.ptx")), module


def fatbin_of(tools: CudaTools, capabilities: str, kernels: Mapping[str, str] | None = None) -> bytes:
    """A fatbin; `kernels` may give a capability other PTX than the rest."""
    images = [
        (capability, *assembled(tools, capability, (kernels or {}).get(capability.name, KERNELS)))
        for capability in parse_list(capabilities)
    ]
    return cuda.pack(
        tools,
        [cubin for _, cubin, _ in images],
        [module for capability, _, module in images if capability.ptx],
    )


def loader_of(
    tools: CudaTools,
    fatbin: bytes,
    capabilities: str,
    signatures: Sequence[KernelSignature] = (OTHER, SAXPY),
    lacking: Mapping[str, str] | None = None,
    **more: object,
) -> dict[str, str]:
    """The loader and its stub, by their suffixes."""
    loader = generate(
        LoaderContent(
            module="pkg.kernels_cuda",
            signatures=tuple(signatures),
            lacking={name: parse_list(text) for name, text in (lacking or {}).items()},
            capabilities=parse_list(capabilities),
            version=tools.version,
            fatbin=fatbin,
            generator="rustcuda-backend 0",
            **more,
        )
    )
    return {".py": loader.python, ".pyi": loader.stub}


def module_files(
    tools: CudaTools, capabilities: str = "8.0;9.0a+PTX", *, container: str = "fatbin", **more: object
) -> dict[str, bytes]:
    """The files of one generated module in a package `pkg`."""
    kernels = more.pop("kernels", None)
    fatbin = fatbin_of(tools, capabilities, kernels)
    if container == "elf":
        more |= {"suffix": ".o", "offset": elf.OFFSET}
    texts = loader_of(tools, fatbin, more.pop("listed", capabilities), **more)
    files = {f"pkg/kernels_cuda{suffix}": text.encode() for suffix, text in texts.items()}
    suffix = ".o" if container == "elf" else ".fatbin"
    return {**files, f"pkg/kernels_cuda{suffix}": elf.object_file(fatbin) if container == "elf" else fatbin}


def record_of(files: Mapping[str, bytes]) -> bytes:
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join([*lines, "pkg-1.dist-info/RECORD,,\n"]).encode()


def wheel(path: Path, files: Mapping[str, bytes], *, record: bytes | None = None) -> Path:
    """A wheel with these files and a RECORD."""
    content = {"pkg/__init__.py": b"", **files, "pkg-1.dist-info/METADATA": b"Name: pkg\n"}
    content["pkg-1.dist-info/RECORD"] = record_of(content) if record is None else record
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    path.write_bytes(stream.getvalue())
    return path
