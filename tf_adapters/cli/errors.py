"""Turns errors into exit statuses and into messages without a traceback."""

import errno
import os
import re
import sys
from typing import Any

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.common.errors import Stopped
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

# Printed after the traceback of an error that is not the user's.
FAULT = (
    "This is a bug in tf_adapters, unless the last file above is your own "
    "--plugin. Please report it where you got tf_adapters from, with the "
    "command and everything above."
)

# Error numbers of the operating system if a file cannot be written because the
# disk is full, or a quota or a limit on file sizes is reached.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Exit status of programs that end because nobody reads their output: 128 and
# the number of SIGPIPE.
_BROKEN_PIPE = 141
_REFUSED = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EEXIST, errno.ENOENT),
)
# Matches the message of an error of this library that was raised in Python code
# which a TensorFlow graph called. TensorFlow then raises its own error, whose
# message contains the traceback. The traceback's last line matches.
_IN_A_GRAPH = re.compile(
    r"^ *(?:tf_adapters\.[\w.]+)?(?:User|Config|Data|Adapter)Error: (.+)$",
    re.MULTILINE,
)


def exit_status(command: Any, *arguments: Any) -> Any:
    """Calls the function of a command, and returns the exit status.

    If the function raises an error that is not a bug, prints its message.

    Args:
        command: Function that returns an exit status, or `None` for 0.
        *arguments: Arguments of the function.

    Returns:
        The status that the function returned, 1 after a user error, 75 after
        SIGTERM if the same command can resume the work, 130 after Ctrl-C, or
        141 if the reader of the output has closed it before the command ended.

    Raises:
        Exception: If the command has a bug. A note says that it is a bug of
            this library.
    """
    try:
        return command(*arguments) or 0
    except BrokenPipeError:
        # A reader such as `head` has closed the pipe. Redirect the output.
        # Otherwise Python reports the broken pipe again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Exception as error:
        sentence = error_sentence(error)
        if sentence is None:
            # A command may call this function while it runs itself.
            if FAULT not in getattr(error, "__notes__", ()):
                error.add_note(FAULT)
            raise
        # Errors after which the command can be resumed have their own status.
        status = getattr(error, "exit_status", 1)
        print(f"{'Error: ' * (status == 1)}{sentence}", file=sys.stderr)
        return status
    except KeyboardInterrupt as error:
        return getattr(error, "exit_status", 130)


def error_sentence(error: Any) -> Any:
    """Returns the message for the user about an error, or `None` for a bug.

    If the error is a bug of this program, its traceback must be shown.
    """
    ours = isinstance(error, UserError | NonFiniteError | Stopped)
    inside = _IN_A_GRAPH.findall(str(error))
    if inside and (ours or type(error).__module__.startswith("tensorflow")):
        return inside[-1]
    if ours:
        return str(error)
    # If the disk is full, TensorFlow and safetensors raise errors of their own,
    # which contain the operating system's message.
    full = [os.strerror(code) for code in _FULL]
    if any(words in str(error) for words in full):
        return (
            f"Cannot write the results: {cut(error)}. Free some space, or give "
            "a folder on another disk. Everything saved before is intact: if "
            "a training was under way, the same command without --overwrite "
            "resumes from the last checkpoint."
        )
    refused = isinstance(error, OSError) and error.errno in _REFUSED
    if refused and error.filename is not None:
        return (
            f"Cannot use {cut(error.filename)}: {error.strerror}. Give a path "
            "that you may read and write."
        )
    return None
