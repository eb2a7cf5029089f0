"""`dataclass`, as in the standard library, for programs that start often.

The standard one compiles up to six methods for each class, which took a third of the time in which
`deltatape check` starts. This one compiles `__init__` alone, when the first object of a class is
made; for the other methods, classes share functions. They are dataclasses to `replace`, `fields`,
`match`, `pickle`, pytest and type checkers.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Never

_Method = Callable[..., Any]


def _init(cls: Any, *, frozen: bool) -> _Method:
    """Return an `__init__` that replaces itself by the compiled one when it is called."""

    def init(self: object, *args: object, **kwargs: object) -> None:
        cls.__init__ = _compiled_init(cls, frozen=frozen)
        cls.__init__(self, *args, **kwargs)

    return init


def _compiled_init(cls: Any, *, frozen: bool) -> _Method:
    scope: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    positional, named = ["self"], ["*"]
    body = []
    for field in dataclasses.fields(cls):
        name = parameter = value = field.name
        if field.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_missing"
            value = f"_make_{name}() if {name} is _missing else {name}"
        if field.init:
            (named if field.kw_only else positional).append(parameter)
        elif parameter == name:
            continue  # __post_init__ sets it
        else:
            scope[name] = field.default  # instead of a parameter
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(named if len(named) > 1 else [])])
    source = "\n ".join([f"def __init__({parameters}):", *(body or ["pass"])])
    exec(source, scope)  # noqa: S102 - as the standard library does
    compiled: _Method = scope["__init__"]
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    return compiled


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{x.name}={getattr(self, x.name)!r}" for x in dataclasses.fields(self) if x.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _comparison(cls: Any) -> tuple[_Method, _Method]:
    """Return `__eq__` and `__hash__`."""
    fields = dataclasses.fields(cls)
    compared = attrgetter("__class__", *(x.name for x in fields if x.compare))
    hashed = attrgetter(
        "__class__", *(x.name for x in fields if (x.compare if x.hash is None else x.hash))
    )

    def equal(self: object, other: object) -> object:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    def hash_value(self: object) -> int:
        return hash(hashed(self))

    # By this name pytest tells that it may compare two objects field by field.
    equal.__code__ = equal.__code__.replace(co_filename="<string>")
    return equal, hash_value


def _set_frozen(self: object, name: str, value: object) -> Never:  # noqa: ARG001
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete_frozen(self: object, name: str) -> Never:  # noqa: ARG001
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _dataclass(
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    weakref_slot: bool = False,
) -> Callable[[Any], Any]:
    """Make a class a dataclass; methods that it defines itself stay."""
    # Without a method to compile, the standard library only finds the fields and makes the slots.
    plain = dataclasses.dataclass(
        init=False, repr=False, eq=False, slots=slots, kw_only=kw_only, weakref_slot=weakref_slot
    )

    def make(undecorated: Any) -> Any:
        cls: Any = plain(undecorated)
        own = vars(cls)
        methods: dict[str, _Method | None] = {
            "__init__": _init(cls, frozen=frozen),
            "__repr__": _repr,
        }
        if eq and "__eq__" not in own:
            equal, hash_value = _comparison(cls)
            methods |= {"__eq__": equal, "__hash__": hash_value if frozen else None}
        if frozen:
            methods |= {"__setattr__": _set_frozen, "__delattr__": _delete_frozen}
        if frozen and slots:  # pickle would set attributes
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
        for name, method in methods.items():
            if name not in own:
                setattr(cls, name, method)
        return cls

    return make


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - exported
else:
    dataclass = _dataclass
