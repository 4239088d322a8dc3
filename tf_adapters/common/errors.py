"""The errors that people can mend, by what they are about."""


class ConfigError(ValueError):
    """A mistake in a configuration, said in one sentence."""


class DataError(ValueError):
    """A data set that is missing, unreachable or malformed."""


class AdapterError(ValueError):
    """An adapter folder that cannot be used, and why."""


class NonFiniteError(RuntimeError):
    """A loss or a gradient became NaN or infinite."""


class Stopped(RuntimeError):
    """The run was told to stop; the same command goes on with it.

    Attributes:
        exit_status: What a program should end with: that of sysexits.h for
            "try again".
    """

    exit_status = 75
