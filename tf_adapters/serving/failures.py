"""Converts errors to the replies that the requests get."""

from __future__ import annotations

import errno
import logging

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.interop.hub import HubError
from tf_adapters.serving.messages import Reply
from tf_adapters.serving.request_error import RequestError

_LOGGER = logging.getLogger(__name__)
# Names of errors, so that the gateway does not import TensorFlow or models.
_NO_ROOM = ("MemoryError", "ResourceExhaustedError", "BankBusyError")
# Errors of a disk that say that the adapter's folder is incomplete.
_INCOMPLETE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)


def loading_failed(error: Exception) -> Reply:
    """Returns the reply to a request for an adapter that cannot be loaded.

    Its status is 503 if the network or the disk failed, if there was too little
    memory, or if the bank was busy, which may pass. It is 409 if the adapter
    cannot be used.
    """
    status = 503 if _may_pass(error) else 409
    message = str(error)
    if not isinstance(error, UserError | RequestError):
        _LOGGER.error("Loading failed.", exc_info=error)
        message = f"The adapter cannot be loaded: {type(error).__name__}"
    return Reply(status=status, message=message, is_damaged=True)


def answering_failed(error: Exception) -> Reply:
    """Returns the reply to a request whose texts cannot be answered.

    An adapter that the bank has removed is read again to answer. Its status is
    503 if that failed for a reason that may pass.
    """
    passes = _may_pass(error)
    if isinstance(error, UserError | RequestError):
        status = 409 if isinstance(error, AdapterError | RequestError) else 400
        return Reply(status=503 if passes else status, message=str(error))
    _LOGGER.error("A request failed.", exc_info=error)
    message = f"The texts cannot be read or answered: {type(error).__name__}"
    return Reply(status=503 if passes else 500, message=message)


def _may_pass(error: BaseException | None) -> bool:
    """Returns whether an error, or one that caused it, may be gone later."""
    while error is not None:
        if isinstance(error, HubError) or _lacked_room(error):
            return True
        if isinstance(error, OSError) and error.errno is not None:
            return error.errno not in _INCOMPLETE
        error = error.__cause__
    return False


def _lacked_room(error: BaseException) -> bool:
    """Returns whether there was no memory, or no free place in the bank."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint(_NO_ROOM)
