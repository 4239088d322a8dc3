"""Limits of the server on the size, number and duration of requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
from typing import Any

from tf_adapters.serving.request_error import RequestError

# A token of a common language has four to five characters. With a small number,
# a batch is rather too small than too large.
_CHARACTERS_PER_TOKEN = 3


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits on requests.

    Attributes:
        texts: Maximum number of instances in a request. An instance is a text,
            or the texts that are read together, such as a pair.
        characters: Maximum number of characters of an instance. Each of its
            strings counts as at least one.
        body_bytes: Maximum size of a request's body.
        body_seconds: Seconds within which a client must send the body.
        seconds: Seconds after which a request ends without an answer. A client
            can ask for less in the header `X-Request-Timeout`.
        waiting: Maximum number of requests that wait or are computed. More are
            refused with status 429.
    """

    texts: int = 256
    characters: int = 100_000
    body_bytes: int = 8_000_000
    body_seconds: float = 10.0
    seconds: float = 30.0
    waiting: int = 1_000

    def check_instances(self, instances: Sequence[Any]) -> None:
        """Raises a `RequestError` if there are too many or too long texts."""
        self.check_number(len(instances))
        for place, instance in enumerate(instances):
            # Millions of empty strings take long, too.
            length = sum(max(1, len(text)) for text in texts_in(instance))
            if length > self.characters:
                raise RequestError(
                    413,
                    f"Instance {place} (the first is 0) has {length:,} "
                    f"characters. Expected at most {self.characters:,}.",
                )

    def check_number(self, number: int) -> None:
        """Raises a `RequestError` if a request has too many instances.

        Called as soon as a request is parsed, because other checks take long
        for millions of instances.

        Args:
            number: Number of the request's instances.
        """
        if number == 0:
            raise RequestError(
                400,
                f"Expected 1 to {self.texts} instances in a request. Received: "
                "0.",
            )
        if number > self.texts:
            raise self.too_many(str(number))

    def too_many(self, received: str) -> RequestError:
        """Returns the error for a request with too many instances.

        Args:
            received: The number of instances, in words or digits.
        """
        return RequestError(
            413,
            f"Expected 1 to {self.texts} instances in a request. Received: "
            f"{received}. Send them in several requests.",
        )

    def timeout(self, asked: str | None) -> float:
        """Returns the number of seconds that a request may take.

        Args:
            asked: Value of the header `X-Request-Timeout`, or `None`.

        Raises:
            RequestError: If `asked` is not a positive number.
        """
        if asked is None:
            return self.seconds
        try:
            seconds = float(asked)
        except ValueError:
            seconds = math.nan
        if not seconds > 0:
            raise RequestError(
                400,
                "The header `X-Request-Timeout` must be a positive number of "
                f"seconds. Received: {asked[:40]!r}",
            )
        return min(seconds, self.seconds)

    async def read_body(
        self, chunks: AsyncIterator[bytes], headers: Mapping[str, str]
    ) -> bytes:
        """Reads the body of a request.

        Args:
            chunks: Parts of the body, as they arrive.
            headers: Headers of the request.

        Raises:
            RequestError: If the body is too long, compressed, or arrives too
                slowly.
        """
        if headers.get("content-encoding", "identity") != "identity":
            raise RequestError(415, "Send the body without compression.")
        if int(headers.get("content-length") or 0) > self.body_bytes:
            raise self._too_long()
        try:
            return await asyncio.wait_for(
                self._joined(chunks), self.body_seconds
            )
        except TimeoutError:
            raise RequestError(
                408,
                "The body did not arrive within "
                f"{self.body_seconds:g} seconds.",
            ) from None

    async def _joined(self, chunks: AsyncIterator[bytes]) -> bytes:
        body = bytearray()
        async for chunk in chunks:
            body += chunk
            if len(body) > self.body_bytes:
                raise self._too_long()
        return bytes(body)

    def _too_long(self) -> RequestError:
        return RequestError(
            413, f"The body has more than {self.body_bytes:,} bytes."
        )


def texts_in(instance: Any) -> Iterator[str]:
    """Yields all strings in an instance: a string, or nested lists or dicts."""
    if isinstance(instance, str):
        yield instance
    elif isinstance(instance, dict):
        for value in instance.values():
            yield from texts_in(value)
    elif isinstance(instance, list):
        for value in instance:
            yield from texts_in(value)


def estimated_tokens(instances: Sequence[Any], longest: int | None) -> int:
    """Estimates the number of tokens of instances from their characters.

    Args:
        instances: List of instances of one request.
        longest: Maximum number of tokens of an instance. Longer ones are
            truncated. `None` if longer ones are split into windows.
    """
    counts = map(_tokens_of, instances)
    return sum(counts if longest is None else (min(longest, n) for n in counts))


def _tokens_of(instance: Any) -> int:
    lengths = [len(text) for text in texts_in(instance)]
    # A word of a list has at least one token, however short it is.
    return 3 + max(len(lengths), sum(lengths) // _CHARACTERS_PER_TOKEN)
