"""Exit statuses, and the errors that are reported without a traceback."""

import errno
import os
import re
import sys
from typing import Any

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.common.errors import Stopped
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

# Printed after the traceback of any other error.
FAULT = (
    "This is a bug in tf_adapters, unless the last file above is your own "
    "--plugin. Please report it where you got tf_adapters from, with the "
    "command and everything above."
)

# Writing failed for lack of space: a full disk, a quota, or a file size limit.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EEXIST, errno.ENOENT),
)
# Matches an error of this library that was raised in Python code which a graph
# called. TensorFlow's own error contains the traceback of that error, and the
# traceback's last line matches.
_IN_A_GRAPH = re.compile(
    r"^ *(?:tf_adapters\.[\w.]+)?(?:User|Config|Data|Adapter)Error: (.+)$",
    re.MULTILINE,
)


def exit_status(command: Any, *arguments: Any) -> Any:
    """Runs a command, reports its error, and returns the exit status.

    Args:
        command: Function that returns an exit status, or `None` for 0.
        *arguments: Arguments of the function.

    Returns:
        The command's own status, 1 after a user error, 75 after SIGTERM if the
        same command can resume the work, or 130 after Ctrl-C.

    Raises:
        Exception: If the command has a bug. A note says that it is a bug of
            this library.
    """
    try:
        return command(*arguments) or 0
    except BrokenPipeError:
        # A reader such as `head` has closed the pipe. Redirect the output, or
        # Python reports the broken pipe again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        sentence = error_sentence(error)
        if sentence is None:
            error.add_note(FAULT)
            raise
        # Errors after which the command can be resumed have their own status.
        status = getattr(error, "exit_status", 1)
        print(f"{'Error: ' * (status == 1)}{sentence}", file=sys.stderr)
        return status
    except KeyboardInterrupt as error:
        return getattr(error, "exit_status", 130)


def error_sentence(error: Any) -> Any:
    """Returns the message to show to the user for an error, or `None`.

    `None` means that the error is a bug of this program, whose traceback is
    needed.
    """
    ours = isinstance(error, UserError | NonFiniteError | Stopped)
    inside = _IN_A_GRAPH.findall(str(error))
    if inside and (ours or type(error).__module__.startswith("tensorflow")):
        return inside[-1]
    if ours:
        return str(error)
    # TensorFlow and safetensors raise their own errors with the same message.
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
