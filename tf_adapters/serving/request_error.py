"""The error that ends a request with an HTTP status."""

from __future__ import annotations


class RequestError(Exception):
    """Raised if a request is refused.

    Args:
        status: HTTP status of the response, 400 or more.
        message: One or two sentences for the client.
        retry_after: Number of seconds after which the client may try again, for
            the header `Retry-After`. Default: `None`, no header.
    """

    def __init__(
        self, status: int, message: str, retry_after: int | None = None
    ) -> None:
        # All arguments, so that the error can be pickled.
        super().__init__(status, message, retry_after)
        self.status = status
        self.message = message
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.message


class LoadError(RequestError):
    """Raised if an adapter cannot be loaded.

    The status is 409 if the adapter cannot be used, or 503 if the network or
    the disk failed.
    """
