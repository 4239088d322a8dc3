"""Records which adapters a server offers, under which names."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import math
import time
from typing import Any

from tf_adapters.common.errors import cut
from tf_adapters.serving.request_error import RequestError

# Seconds after which an adapter is loaded again that the network or the disk
# did not give.
RETRY_SECONDS = 5


@dataclasses.dataclass(frozen=True)
class Offer:
    """An adapter that a server offers.

    Attributes:
        name: Name in requests.
        source: Path of the adapter's folder, or its `hf://` address.
        version: Integer that grows each time the name is loaded again.
        facts: Dict that `Engine.load` returned, or `None` before the adapter
            was loaded.
        problem: Message that says why the adapter cannot be used, or `None`.
        retry_at: Time, as from `time.monotonic`, from which the adapter is
            loaded again although there was a problem.
    """

    name: str
    source: str
    version: int
    facts: dict[str, Any] | None = None
    problem: str | None = None
    retry_at: float = math.inf

    @property
    def key(self) -> str:
        """Name of this version of the adapter in the engine's bank."""
        return f"{self.name}@{self.version}"

    def check(self) -> None:
        """Raises a `RequestError` if the adapter cannot be used now.

        Raises:
            RequestError: With status 409, or 503 if the problem may pass.
        """
        left = self.retry_at - time.monotonic()
        if self.problem is None or left <= 0:
            return
        if left == math.inf:
            raise RequestError(409, self.problem)
        raise RequestError(503, self.problem, retry_after=math.ceil(left))


class Catalog:
    """The adapters that a server offers, by name."""

    def __init__(self) -> None:
        self._offers: dict[str, Offer] = {}
        self._declared: dict[str, str] = {}
        # An engine may still hold adapters under the keys of a catalog that was
        # lost with its process, so numbers do not start at 0 again.
        self._latest = time.time_ns() // 1_000_000

    def offers(self) -> list[Offer]:
        """Returns all offers, sorted by name."""
        return sorted(self._offers.values(), key=lambda offer: offer.name)

    def find(self, name: str) -> Offer | None:
        """Returns the offer of a name, or `None`."""
        return self._offers.get(name)

    def get(self, name: str) -> Offer:
        """Returns the offer of a name.

        Raises:
            RequestError: With status 404 if there is no adapter of this name.
        """
        offer = self._offers.get(name)
        if offer is None:
            raise RequestError(
                404,
                f"There is no adapter `{cut(name)}`. `POST "
                "/v2/repository/index` lists the adapters.",
            )
        return offer

    def new_offer(self, name: str, source: str) -> Offer:
        """Returns an offer with a new version, which is not in the catalog."""
        return Offer(name, source, self.next_version())

    def next_version(self) -> int:
        """Returns a number that is greater than all versions so far."""
        self._latest += 1
        return self._latest

    def put(self, offer: Offer) -> None:
        """Adds an offer, or replaces the offer of the same name."""
        self._offers[offer.name] = offer

    def replace(self, offer: Offer, **changes: Any) -> None:
        """Changes attributes of an offer, unless it was replaced or removed."""
        now = self._offers.get(offer.name)
        if now is not None and now.key == offer.key:
            self.put(dataclasses.replace(now, **changes))

    def fail(self, offer: Offer, error: RequestError) -> None:
        """Records that an adapter could not be loaded.

        Args:
            offer: The adapter's offer.
            error: With status 409, the adapter is refused until it is loaded by
                a request. Otherwise, it is loaded again when it is asked for
                after five seconds.
        """
        wait = math.inf if error.status == 409 else RETRY_SECONDS
        self.replace(
            offer,
            facts=None,
            problem=error.message,
            retry_at=time.monotonic() + wait,
        )

    def postpone(self, offer: Offer) -> None:
        """Sets the next time to load an adapter that could not be loaded."""
        self.replace(offer, retry_at=time.monotonic() + RETRY_SECONDS)

    def remove(self, name: str) -> Offer:
        """Removes the offer of a name, and returns it.

        Raises:
            RequestError: With status 404 if there is no adapter of this name.
        """
        offer = self.get(name)
        del self._offers[name]
        return offer

    def declare(self, sources: Mapping[str, str]) -> list[Offer]:
        """Makes the catalog agree with a declared set of adapters.

        Adapters that were declared before and now are not are removed. Adapters
        that were added by requests stay.

        Args:
            sources: Dict from name to path or address.

        Returns:
            The removed offers.
        """
        gone = [
            name
            for name, source in self._declared.items()
            if sources.get(name) != source and name in self._offers
        ]
        removed = [self.remove(name) for name in gone]
        for name, source in sources.items():
            if self._declared.get(name) != source:
                self.put(self.new_offer(name, source))
        self._declared = dict(sources)
        return removed
