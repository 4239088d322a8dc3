"""Reads the pickle of a PyTorch file as plain data, without running code.

A pickle is a program for a small machine with a stack and a memo. The machine
here supports only the opcodes and names that a file of tensors needs. It makes
strings, numbers, tuples and dicts. It never imports or calls what the file
names, and it takes one step for each opcode.
"""

import pickletools
import re
import typing
from typing import Any

_MAX_AXES = 64  # NumPy's limit.
_MAX_NUMBER = 2**63
# Enough for about ten thousand tensors.
_MAX_BYTES = 2_000_000


class PickleError(Exception):
    """Raised if a pickle is not a dict of tensors. The message says why."""


class Storage(typing.NamedTuple):
    """A file of numbers in the archive.

    Attributes:
        kind: Name of PyTorch's class, `"FloatStorage"` for example.
        key: Name of the file in the archive.
        count: How many numbers the file has.
    """

    kind: str
    key: str
    count: int


class View(typing.NamedTuple):
    """The part of a `Storage` that makes a tensor.

    `offset` and `stride` count numbers, not bytes.
    """

    storage: Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


class _Name(typing.NamedTuple):
    """A class or function that a pickle names; it is never looked up."""

    module: str
    name: str


_ORDERED_DICT = _Name("collections", "OrderedDict")
_REBUILD = _Name("torch._utils", "_rebuild_tensor_v2")
_CONSTANTS = {"NEWTRUE": True, "NEWFALSE": False, "NONE": None}


def read_views(
    content: bytes, storages: typing.Collection[str]
) -> dict[str, View]:
    """Reads a pickle and returns a dict from each tensor's name to its `View`.

    Args:
        content: The pickle, as bytes.
        storages: Names of PyTorch's storage classes that the pickle may use.

    Raises:
        PickleError: If the pickle is damaged, or has anything but named
            tensors.
    """
    if len(content) > _MAX_BYTES:
        raise PickleError(
            f"its list of tensors has {len(content):,} bytes, and "
            f"{_MAX_BYTES:,} are enough for any adapter"
        )
    machine = _Machine(storages)
    try:
        for opcode, argument, _ in pickletools.genops(content):
            machine.run(opcode.name, argument)
        (result,) = machine.stack
    except (IndexError, KeyError, ValueError) as error:
        # The message is left out, as it can quote the file at any length.
        raise PickleError("its list of tensors is damaged") from error
    is_dict = isinstance(result, dict)
    if not is_dict or not all(isinstance(v, View) for v in result.values()):
        raise PickleError("it holds something other than named tensors")
    return result


class _Machine:
    """Runs the opcodes of a pickle, without importing or calling anything.

    The memo is a dict, so that a huge index takes no more memory than a small
    one.

    Args:
        storages: See `read_views`.
    """

    def __init__(self, storages: typing.Collection[str]) -> None:
        self.storages = storages
        self.stack, self.marks, self.memo = [], [], {}

    def run(self, opcode: str, argument: Any) -> None:
        """Runs one opcode, given its name in `pickletools`."""
        match opcode:
            case "PROTO" | "FRAME" | "STOP":
                pass
            case "BININT" | "BININT1" | "BININT2" | "LONG1":
                self.stack.append(argument)
            case "BINUNICODE" | "SHORT_BINUNICODE":
                self.stack.append(argument)
            case "NEWTRUE" | "NEWFALSE" | "NONE":
                self.stack.append(_CONSTANTS[opcode])
            case "MARK":
                self.marks.append(len(self.stack))
            case "EMPTY_TUPLE":
                self.stack.append(())
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                self.stack.append(tuple(self._take(int(opcode[-1]))))
            case "TUPLE":
                self.stack.append(tuple(self._take_from_mark()))
            case "EMPTY_DICT":
                self.stack.append({})
            case "SETITEM":
                self._set_items(self._take(2))
            case "SETITEMS":
                self._set_items(self._take_from_mark())
            case "BUILD":
                self._ignore_state(*self._take(1))
            case "GLOBAL":
                self.stack.append(self._name(*argument.split(" ", 1)))
            case "STACK_GLOBAL":
                self.stack.append(self._name(*self._take(2)))
            case "BINPERSID":
                self.stack.append(self._storage(*self._take(1)))
            case "REDUCE":
                self.stack.append(_call(*self._take(2)))
            case "BINPUT" | "LONG_BINPUT":
                self.memo[argument] = self.stack[-1]
            case "MEMOIZE":
                self.memo[len(self.memo)] = self.stack[-1]
            case "BINGET" | "LONG_BINGET":
                self.stack.append(self.memo[argument])
            case _:
                raise PickleError(
                    f"its list of tensors has the opcode {opcode}, which no "
                    "file of weights needs"
                )

    def _take(self, count: int) -> list[Any]:
        taken = self.stack[-count:]
        if len(taken) < count:
            raise IndexError("the stack is empty")
        del self.stack[-count:]
        return taken

    def _take_from_mark(self) -> list[Any]:
        mark = self.marks.pop()
        taken = self.stack[mark:]
        del self.stack[mark:]
        return taken

    def _set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        names, values = items[::2], items[1::2]
        # Strings only: hashing nested tuples can take forever.
        are_texts = all(isinstance(name, str) for name in names)
        if not isinstance(target, dict) or not are_texts:
            raise PickleError("it names tensors by something other than text")
        target.update(zip(names, values, strict=True))

    def _ignore_state(self, state: object) -> None:
        # PyTorch stores the modules' versions as an attribute of the dict.
        if not isinstance(self.stack[-1], dict):
            raise PickleError("it sets attributes of something")

    def _name(self, module: object, name: object) -> _Name:
        if not isinstance(module, str) or not isinstance(name, str):
            raise PickleError("it names something by something other than text")
        found = _Name(module, name)
        is_storage = module == "torch" and name in self.storages
        if found in (_ORDERED_DICT, _REBUILD) or is_storage:
            return found
        raise PickleError(
            f"it asks to run {_shown(module, name)}, which no file of weights "
            "needs. Nothing was run. Do not load it elsewhere either, unless "
            "you know who made it"
        )

    def _storage(self, pid: object) -> Storage:
        if not isinstance(pid, tuple) or len(pid) != 5:
            raise PickleError("it holds an unknown kind of storage")
        what, kind, key, _, count = pid
        is_known = what == "storage" and isinstance(kind, _Name)
        if not is_known or kind.module != "torch" or not isinstance(key, str):
            raise PickleError("it holds an unknown kind of storage")
        _check_numbers((count,))
        return Storage(kind.name, key, count)


def _call(name: object, arguments: object) -> View | dict[str, View]:
    """Emulates a function call in a pickle, without running the function.

    Supports two functions: `OrderedDict()`, for which it returns an empty dict,
    and PyTorch's function that makes a tensor, for which it returns a `View`.
    """
    if not isinstance(arguments, tuple):
        raise PickleError("its arguments of a function are not a tuple")
    if name == _ORDERED_DICT and arguments == ():
        return {}
    if name != _REBUILD or len(arguments) < 4:
        raise PickleError("it calls something that does not make a tensor")
    storage, offset, size, stride = arguments[:4]
    if not isinstance(storage, Storage):
        raise PickleError("it holds a tensor without a storage")
    for numbers in ((offset,), size, stride):
        _check_numbers(numbers)
    if len(size) != len(stride):
        raise PickleError("it holds a tensor without a shape")
    return View(storage, offset, size, stride)


def _check_numbers(numbers: Any) -> None:
    is_short = isinstance(numbers, tuple) and len(numbers) <= _MAX_AXES
    if not is_short or not all(
        type(number) is int and 0 <= number < _MAX_NUMBER for number in numbers
    ):
        raise PickleError("it holds a tensor without a shape")


def _shown(module: str, name: str) -> str:
    """Returns `module.name` for an error message.

    If this is not a valid name, returns "something".
    """
    text = f"{module}.{name}"
    return f"`{text}`" if re.fullmatch(r"[\w.]{1,100}", text) else "something"
