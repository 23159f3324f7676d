"""Structs passed by value: Python types that are made when they are first asked for."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.arguments import _Parameter
from rustcuda_backend.loader.runtime.errors import ArgumentTypeError
from rustcuda_backend.loader.runtime.scalars import _ByValue, _scalar_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rustcuda_backend.loader.runtime.library import _Library

    # Each field: its Rust name, its Python name, a scalar or a struct, and the N of `[T; N]` or 0.
    _Fields = tuple[tuple[str, str, str, int], ...]


class _StructValue:
    """A struct that kernels take by value; it does not change once it is made."""

    __slots__ = ("_packed", "_values")

    # What the types derived from it have.
    _place: str
    _converters: Mapping[str, _Parameter]

    _packed: tuple[Any, ...]
    _values: dict[str, Any]

    def __init__(self, /, *values: Any, **named: Any) -> None:
        given = self._named(values, named)
        packed: list[Any] = []
        for name, converter in self._converters.items():
            converter.convert(given[name], packed, None)
        object.__setattr__(self, "_packed", tuple(packed))
        object.__setattr__(self, "_values", {name: given[name] for name in self._converters})

    def _named(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """All fields' values by their names."""
        names = tuple(self._converters)
        given = dict(zip(names, values, strict=False)) | named
        twice = [name for name in names[: len(values)] if name in named]
        if len(values) > len(names) or twice or given.keys() != self._converters.keys():
            came = [*(["…"] * len(values)), *(f"{name}=…" for name in named)]
            raise ArgumentTypeError(
                self._place, "", f"its fields {', '.join(names)}, each once", f"({', '.join(came)})"
            )
        return given

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"{self._place} has no field '{name}'") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self._place} does not change: make a new one to set {name} to {value!r}")

    def __repr__(self) -> str:
        fields = (f"{name}={value!r}" for name, value in self._values.items())
        return f"{type(self).__name__}({', '.join(fields)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._packed == self._packed

    def __hash__(self) -> int:
        return (type(self), self._packed).__hash__()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self._values.values())


class _Structs:
    """The structs of a module, by their names."""

    def __init__(self, library: _Library, module: str, fields: dict[str, _Fields]) -> None:
        self._library, self._module, self._fields = library, module, fields
        self._made: dict[str, type[_StructValue]] = {}

    def __iter__(self) -> Any:
        return self._fields.__iter__()

    def attribute(self, name: str) -> type[_StructValue]:
        """What the module's `__getattr__` returns."""
        if name not in self._fields:
            raise AttributeError(f"module {self._module!r} has no attribute {name!r}")
        return self.named(name)

    def named(self, name: str) -> type[_StructValue]:
        """The type of a struct, made at the first call."""
        made = self._made.get(name)
        if made is None:
            with self._library.lock:
                made = self._made.get(name) or self._make(name)
                self._made[name] = made
        return made

    def _make(self, name: str) -> type[_StructValue]:
        place = f"struct '{name}'"
        converters = {}
        shown = []
        for rust_name, python_name, kind, count in self._fields[name]:
            rust = f"[{kind}; {count}]" if count else kind
            of = _StructParameter if kind in self._fields else _ByValue if count else _scalar_class(kind)
            converters[python_name] = of(self._library, place, rust_name, kind, False, rust)
            shown.append(f"{python_name}: {rust}")
        return type(
            name,
            (_StructValue,),
            {
                "__slots__": (),
                "__module__": self._module,
                "__qualname__": name,
                "__doc__": f"{name}({', '.join(shown)}): a struct that kernels take by value.",
                "__match_args__": tuple(converters),
                "_place": place,
                "_converters": converters,
            },
        )


class _StructParameter(_Parameter):
    """A struct: `rust` is its name; `dtype` is, for a kernel's parameter, how it is packed."""

    def prepare(self) -> None:
        from struct import calcsize

        if self.rust != self.dtype:
            self.format = f"{self.dtype}{-calcsize('<' + self.dtype) % 8}x"

    def convert(self, value: Any, values: list[Any], stream: int | None) -> int:  # noqa: ARG002
        structs = self.library.structs
        assert structs is not None  # noqa: S101 (the module that has this parameter has them)
        wanted = structs.named(self.rust)
        if type(value) is not wanted:
            raise self.wrong_type(value, f"make one: {wanted.__doc__}".partition("): ")[0] + ")")
        values.extend(value._packed)
        return -1
