"""Exit statuses; which errors are told in a sentence, and in which one."""

import errno
import os
import re
import sys

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.common.errors import Stopped
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

# What Python prints after the traceback of any other error.
FAULT = (
    "This is a fault of tf_adapters, not of yours, unless a --plugin of yours "
    "is the last file above. Please report it where you have tf_adapters from, "
    "with the command and all of the above."
)

# Of a write that did not fit: the disk, a quota, the largest file allowed.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EEXIST, errno.ENOENT),
)
# One of our errors, raised in Python that a graph calls: the last line of the
# traceback that TensorFlow makes the text of its own error.
_IN_A_GRAPH = re.compile(
    r"^ *(?:tf_adapters\.[\w.]+)?(?:User|Config|Data|Adapter)Error: (.+)$",
    re.MULTILINE,
)


def exit_status(command, *arguments):
    """Runs a command, tells its error, and returns the exit status.

    Args:
        command: Function that returns its own status, or `None` for 0.
        *arguments: What it is called with.

    Returns:
        The command's own status; 1 after a mistake of the user; 75 after
        SIGTERM, if the same command can go on; 130 after Ctrl-C.
    """
    try:
        return command(*arguments) or 0
    except BrokenPipeError:
        # `| head` has read enough. Python would complain again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        sentence = error_sentence(error)
        if sentence is None:
            error.add_note(FAULT)
            raise
        # What can be gone on with has an exit status of its own.
        status = getattr(error, "exit_status", 1)
        print(f"{'Error: ' * (status == 1)}{sentence}", file=sys.stderr)
        return status
    except KeyboardInterrupt as error:
        return getattr(error, "exit_status", 130)


def error_sentence(error):
    """Returns what people are told about an error, or `None`.

    `None` is a mistake of this program: it needs its traceback.
    """
    ours = isinstance(error, UserError | NonFiniteError | Stopped)
    inside = _IN_A_GRAPH.findall(str(error))
    if inside and (ours or type(error).__module__.startswith("tensorflow")):
        return inside[-1]
    if ours:
        return str(error)
    # TensorFlow and safetensors have their own errors, with the same words.
    full = [os.strerror(code) for code in _FULL]
    if any(words in str(error) for words in full):
        return (
            f"Could not write what was computed: {cut(error)}. Free some "
            "space, or give a folder on another disk. What had been saved "
            "before is whole: the same command, without --overwrite, goes on "
            "from the last checkpoint, if a training was under way."
        )
    refused = isinstance(error, OSError) and error.errno in _REFUSED
    if refused and error.filename is not None:
        return (
            f"Cannot use {cut(error.filename)}: {error.strerror}. Give a path "
            "that you may read and write."
        )
    return None
