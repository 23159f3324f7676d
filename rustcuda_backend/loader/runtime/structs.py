"""Structs passed by value: Python types that are made when they are first asked for."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.arguments import _Parameter
from rustcuda_backend.loader.runtime.errors import ArgumentTypeError
from rustcuda_backend.loader.runtime.scalars import _FLOAT_LIMITS, _ByValue, _scalar_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rustcuda_backend.loader.runtime.library import _Library

    # The doc comment, and each field: its Rust name, its Python name, a scalar or a struct, the N of
    # `[T; N]` or 0, and its doc comment.
    _Described = tuple[str, tuple[tuple[str, str, str, int, str], ...]]


class _StructSignature:
    """Tells `inspect` and `help` what a struct's type takes."""

    def __get__(self, _: object, struct: type[_StructValue]) -> Any:
        from inspect import Parameter, Signature

        return Signature(
            [
                Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=converter.rust)
                for name, converter in struct._rustcuda_converters.items()
            ]
        )


class _StructValue:
    """A struct that kernels take by value; it does not change once it is made.

    Its own names begin with `_rustcuda_`, so that fields can have all others.
    """

    __slots__ = ("_rustcuda_packed", "_rustcuda_values")

    __signature__ = _StructSignature()

    # What the types derived from it have.
    _rustcuda_place: str
    _rustcuda_call: str
    _rustcuda_converters: Mapping[str, _Parameter]

    _rustcuda_packed: tuple[Any, ...]
    _rustcuda_values: dict[str, Any]

    def __init__(self, /, *values: Any, **named: Any) -> None:
        given = _by_name(self, values, named)
        packed: list[Any] = []
        for name, converter in self._rustcuda_converters.items():
            converter.convert(given[name], packed, None)
        object.__setattr__(self, "_rustcuda_packed", tuple(packed))
        object.__setattr__(
            self,
            "_rustcuda_values",
            {
                name: _kept(given[name], converter.dtype)
                for name, converter in self._rustcuda_converters.items()
            },
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{self._rustcuda_place} does not change: make a new one to set {name} to {value!r}"
        )

    def __repr__(self) -> str:
        fields = (f"{name}={value!r}" for name, value in self._rustcuda_values.items())
        return f"{type(self).__name__}({', '.join(fields)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._rustcuda_packed == self._rustcuda_packed

    def __hash__(self) -> int:
        return (type(self), self._rustcuda_packed).__hash__()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self._rustcuda_values.values())


def _by_name(struct: _StructValue, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """All fields' values by their names."""
    names = tuple(struct._rustcuda_converters)
    given = dict(zip(names, values, strict=False)) | named
    twice = [name for name in names[: len(values)] if name in named]
    if len(values) > len(names) or twice or given.keys() != struct._rustcuda_converters.keys():
        came = [*(["…"] * len(values)), *(f"{name}=…" for name in named)]
        raise ArgumentTypeError(
            struct._rustcuda_place, "", f"its fields {', '.join(names)}, each once", f"({', '.join(came)})"
        )
    return given


def _kept(value: Any, dtype: str) -> Any:
    """A field's value as a number or a tuple of Python's own, which nobody can change."""
    if isinstance(value, _StructValue):
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(_kept(each, dtype) for each in value)
    return float(value) if dtype in _FLOAT_LIMITS else bool(value) if dtype == "bool" else int(value)


def _field(name: str, rust: str, doc: str) -> property:
    def get(struct: _StructValue) -> Any:
        return struct._rustcuda_values[name]

    return property(get, doc=rust + (doc and f": {doc}"))


class _Structs:
    """The structs of a module, by their names."""

    def __init__(self, library: _Library, module: str, described: dict[str, _Described]) -> None:
        self._library, self._module, self._described = library, module, described
        self._made: dict[str, type[_StructValue]] = {}

    def __iter__(self) -> Any:
        return self._described.__iter__()

    def attribute(self, name: str) -> type[_StructValue]:
        """What the module's `__getattr__` returns."""
        if name not in self._described:
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
        doc, fields = self._described[name]
        converters = {}
        shown = []
        properties = {}
        for rust_name, python_name, kind, count, field_doc in fields:
            rust = f"[{kind}; {count}]" if count else kind
            of = _StructParameter if kind in self._described else _ByValue if count else _scalar_class(kind)
            converters[python_name] = of(self._library, place, rust_name, kind, False, rust)
            shown.append(f"{python_name}: {rust}")
            properties[python_name] = _field(python_name, rust, field_doc)
        call = f"{name}({', '.join(shown)})"
        return type(
            name,
            (_StructValue,),
            {
                **properties,
                "__slots__": (),
                "__module__": self._module,
                "__qualname__": name,
                "__doc__": f"{call}: a struct that kernels take by value." + (doc and f"\n\n{doc}"),
                "__match_args__": tuple(converters),
                "_rustcuda_place": place,
                "_rustcuda_call": call,
                "_rustcuda_converters": converters,
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
            raise self.wrong_type(value, f"make one: {wanted._rustcuda_call}")
        values.extend(value._rustcuda_packed)
        return -1
