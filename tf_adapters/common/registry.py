"""Classes by the names that settings and folders know them by."""

from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import UserError


class Registry(dict):
    """From a name to a class.

    Args:
        kind: What the classes are, for messages: "method", say.
        decorator: How one is registered, for messages.
    """

    def __init__(self, kind, decorator):
        super().__init__()
        self.kind = kind
        self.decorator = decorator
        # Of replaced classes, too: they may have instances.
        self._names = {}

    def add(self, name, cls, base):
        """Makes a class known by a name.

        A class that is defined again, as by a notebook's cell that runs twice,
        replaces the older one. Instances of that keep their name.

        Args:
            name: What settings and folders say.
            cls: The class.
            base: What it must inherit from.

        Raises:
            UserError: If it inherits from something else, or the name is
                taken.
        """
        if not (isinstance(cls, type) and issubclass(cls, base)):
            raise UserError(
                f"A {self.kind} inherits from `{base.__name__}`. "
                f"Received: {cls}"
            )
        known = self.setdefault(name, cls)
        # A file that is imported twice, as a module and as a plug-in.
        if known.__qualname__ != cls.__qualname__:
            raise UserError(
                f"There is a {self.kind} `{name}` already, {known.__name__}. "
                f"Give {cls.__name__} another name."
            )
        self[name] = cls
        self._names.setdefault(cls, name)

    def no_attribute(self, package, name):
        """Returns the error of a package of classes that lacks an attribute.

        Args:
            package: Full name of the package.
            name: What it was asked for; perhaps the name of settings.
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

    def name_of(self, value):
        """Returns the name of an object's class.

        Raises:
            UserError: If the class has none.
        """
        name = self._names.get(type(value))
        if name is None:
            raise UserError(
                f"{type(value).__name__} has no name, so that no folder could "
                f'store it. Put `{self.decorator}("...")` above it.'
            )
        return name
