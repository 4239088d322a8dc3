"""Registries, which map names in settings and adapter folders to classes."""

from typing import Any

from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import UserError


class Registry(dict[str, type[Any]]):
    """A dict from a registered name, such as `"houlsby"`, to its class.

    Args:
        kind: What messages call a registered class, such as "method".
        decorator: Decorator that registers a class, as text for messages.
    """

    def __init__(self, kind: str, decorator: str) -> None:
        super().__init__()
        self.kind = kind
        self.decorator = decorator
        # Includes replaced classes, because they may still have instances.
        self._names: dict[type[Any], str] = {}

    def add(self, name: str, cls: Any, base: type[Any]) -> None:
        """Registers a class under a name.

        If a class is defined again, for example by running a notebook cell
        twice, it replaces the earlier one. Instances of the earlier class keep
        their name.

        Args:
            name: Name of the class in settings and folders.
            cls: The class.
            base: Class that `cls` must inherit from.

        Raises:
            UserError: If `cls` does not inherit from `base`, or a different
                class has this name.
        """
        if not (isinstance(cls, type) and issubclass(cls, base)):
            raise UserError(
                f"A {self.kind} inherits from `{base.__name__}`. "
                f"Received: {cls}"
            )
        known = self.setdefault(name, cls)
        # Classes are compared by name, because a file can be imported twice, as
        # a module and as a plugin.
        if known.__qualname__ != cls.__qualname__:
            raise UserError(
                f"There is a {self.kind} `{name}` already, {known.__name__}. "
                f"Give {cls.__name__} another name."
            )
        self[name] = cls
        self._names.setdefault(cls, name)

    def no_attribute(self, package: str, name: str) -> AttributeError:
        """Returns the `AttributeError` for a name that a package does not have.

        Args:
            package: Full name of the package.
            name: Name that was looked up in the package. It may be a
                registered name, such as `"houlsby"`, instead of a class name.
        """
        classes = {cls.__name__: cls for cls in self.values()}
        if name in self:
            cls = self[name].__name__
            return AttributeError(
                f"`{name}` is the name in settings and folders. In Python the "
                f"{self.kind} is a class: `{package}.{cls}(...)`."
            )
        hint = did_you_mean(name, classes)
        return AttributeError(
            f"`{package}` has no `{name}`.{hint} Its {self.kind}s are "
            f"{', '.join(classes)}."
        )

    def name_of(self, value: object) -> str:
        """Returns the name under which an object's class is registered.

        Raises:
            UserError: If the class is not registered.
        """
        name = self._names.get(type(value))
        if name is None:
            raise UserError(
                f"{type(value).__name__} has no name, so it cannot be stored "
                f'in a folder. Put `{self.decorator}("...")` above it.'
            )
        return name
