"""What the service sends to the engine, and what it gets back."""

from __future__ import annotations

import dataclasses
from typing import Any
from typing import Protocol


@dataclasses.dataclass(frozen=True)
class Ask:
    """A request for the predictions of one adapter.

    Attributes:
        key: Name of the adapter in the engine's bank.
        source: Path or address from which the adapter can be loaded.
        instances: List of texts, lists or dicts; see `instances`.
        tokens: Estimated number of tokens.
        deadline: Time, as from `time.time`, after which nobody waits for the
            answer.
    """

    key: str
    source: str
    instances: list[Any]
    tokens: int
    deadline: float


@dataclasses.dataclass(frozen=True)
class Reply:
    """The answer to an `Ask`.

    Attributes:
        answers: List with a dict for each instance, as `tf-adapters predict`
            prints it. Empty if the request failed.
        tokens: Number of tokens that were read.
        status: HTTP status, 200 or an error.
        message: Message of the error.
        is_damaged: Whether the error is that the adapter cannot be loaded.
    """

    answers: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    tokens: int = 0
    status: int = 200
    message: str = ""
    is_damaged: bool = False


class EngineClient(Protocol):
    """Reaches the engine, which may run in other processes."""

    async def answer(self, ask: Ask) -> Reply:
        """Returns the reply to a request, which may be batched with others."""
        ...

    async def load(self, key: str, source: str) -> dict[str, Any]:
        """Loads an adapter; see `Engine.load`.

        Raises:
            LoadError: If the adapter cannot be loaded.
        """
        ...

    async def load_first(self, sources: dict[str, str]) -> None:
        """Loads many adapters at once; see `Engine.load_first`."""
        ...

    async def prepare(self) -> None:
        """Prepares the engine for requests; see `Engine.prepare`."""
        ...

    async def forget(self, key: str) -> None:
        """Removes an adapter; see `Engine.forget`."""
        ...

    async def is_ready(self) -> bool:
        """Returns whether the engine answers."""
        ...
