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
        characters: Maximum number of characters of an instance.
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
        if not 0 < len(instances) <= self.texts:
            advice = " Send them in several requests." if instances else ""
            raise RequestError(
                413 if instances else 400,
                f"Expected 1 to {self.texts} instances in a request. Received: "
                f"{len(instances)}.{advice}",
            )
        for place, instance in enumerate(instances):
            length = sum(len(text) for text in texts_in(instance))
            if length > self.characters:
                raise RequestError(
                    413,
                    f"Instance {place} (the first is 0) has {length:,} "
                    f"characters. Expected at most {self.characters:,}.",
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


def estimated_tokens(instances: Sequence[Any], longest: int) -> int:
    """Estimates the number of tokens of instances from their characters.

    Args:
        instances: List of instances of one request.
        longest: Maximum number of tokens of an instance. Longer ones are
            truncated.
    """
    return sum(
        min(
            longest,
            3 + sum(map(len, texts_in(instance))) // _CHARACTERS_PER_TOKEN,
        )
        for instance in instances
    )
