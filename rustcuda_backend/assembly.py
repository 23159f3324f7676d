"""Cubins from the cache, or from ptxas where it has not assembled the same text before."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from rustcuda_backend import cache, cuda
from rustcuda_backend.capability import Capability
from rustcuda_backend.cubin import Cubin, KernelResources
from rustcuda_backend.cuda import CudaTools
from rustcuda_backend.ptx import PtxModule
from rustcuda_backend.version import VERSION


def assembled(module: PtxModule, tools: CudaTools, arguments: Sequence[str], keep: Path) -> Cubin:
    """The cubin of a PTX text.

    Args:
        module: The text and what it is for.
        tools: The ptxas; another version has cubins of its own.
        arguments: More arguments for ptxas.
        keep: Where the text lies, for ptxas' messages.

    Raises:
        AssembleError: ptxas refuses it.
    """
    key = cache.digest(VERSION, module.text, module.capability.sm, tools.ptxas_version, *arguments)
    data = cache.file(
        "cubins", key, lambda: _dump(cuda.assemble(tools, module, arguments=arguments, keep=keep))
    )
    return _load(data, module.capability)


def _dump(cubin: Cubin) -> bytes:
    kernels = [dataclasses.asdict(kernel) for kernel in cubin.kernels]
    data = base64.b64encode(cubin.data).decode()
    return json.dumps({"data": data, "kernels": kernels, "messages": cubin.messages}).encode()


def _load(data: bytes, capability: Capability) -> Cubin:
    content = json.loads(data)
    kernels = tuple(KernelResources(**kernel) for kernel in content["kernels"])
    return Cubin(capability, base64.b64decode(content["data"]), kernels, tuple(content["messages"]))
