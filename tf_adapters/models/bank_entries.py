"""Records which adapters a bank holds, for use by several threads at once.

Each adapter has an entry. The entry holds the index that selects the adapter
for an example, and the adapter's rows in the bank's layers. A request looks up
entries with `using` and uses them until the request ends. If an adapter is
replaced or removed meanwhile, new requests no longer find its entry. Its index
and rows are overwritten only when no request uses them, so that a request is
never answered by another adapter.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import threading
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut


class BankBusyError(AdapterError):
    """Requests use all adapters that another one could replace."""


@dataclasses.dataclass
class Entry:
    """The record of one adapter in a bank.

    Attributes:
        index: Integer that selects the adapter in `adapter_ids`.
        member: The adapter as a `Member`, without weights.
        rows: Dict from `Place` to the row that has the adapter's weights.
        gives: Name of the bank's output that holds the adapter's results:
            `"texts"` (one per text) or `"tokens"` (one per token).
        num_outputs: Number of outputs of the adapter's head.
        is_pinned: Whether other adapters may not overwrite this one.
        uses: Number of requests that are using the adapter.
    """

    index: int
    member: Any
    rows: dict[Any, int]
    gives: str
    num_outputs: int
    is_pinned: bool = False
    uses: int = 0


@dataclasses.dataclass(frozen=True)
class UsedEntries:
    """The adapters of a batch: one entry of the bank for each example.

    The statement `with bank.using(names) as used` creates it as `used`.

    Attributes:
        entries: List of `Entry`.

    Examples:
        >>> one = tf_adapters.adapt(encoder, methods.IA3(), head, name="one")
        >>> bank = tf_adapters.load_bank([one], encoder)
        >>> with bank.using(["one", "one"]) as used:
        ...     ids = used.adapter_ids
        ...     answers = used.split(bank({**features, "adapter_ids": ids}))
        >>> labels = used.members[0].head.decode(np.stack(answers))
        >>> len(labels)
        2
    """

    entries: list[Entry]

    @property
    def adapter_ids(self) -> np.ndarray:
        """The bank's input `adapter_ids`: int32 indices, `(batch,)`."""
        return np.array([entry.index for entry in self.entries], "int32")

    @property
    def members(self) -> list[Any]:
        """Each example's adapter as a `Member`, which includes the head."""
        return [entry.member for entry in self.entries]

    def split(self, outputs: Any) -> list[np.ndarray]:
        """Returns the outputs of each example, cut to the width of its head.

        Args:
            outputs: Outputs of a call of the bank, or of `predict`.

        Returns:
            List with an array for each example: `(outputs,)`, or `(tokens,
            outputs)` if the head reads all tokens.
        """
        if not isinstance(outputs, dict):
            outputs = {"texts": outputs}
        arrays = {k: ops.convert_to_numpy(v) for k, v in outputs.items()}
        return [
            arrays[entry.gives][i][..., : entry.num_outputs]
            for i, entry in enumerate(self.entries)
        ]


@dataclasses.dataclass(frozen=True)
class Claim:
    """Room for a new adapter.

    Attributes:
        index: The new adapter's index.
        freed: List of `Entry`: removed adapters whose rows are free now.
        evicted: Name and `Entry` of the adapter that was removed to make room,
            or `None`.
    """

    index: int
    freed: list[Entry]
    evicted: tuple[str, Entry] | None


class BankEntries:
    """The entries of a bank by name, least recently used first.

    Args:
        capacity: Integer. Maximum number of adapters. There is one index more
            than that, so that an adapter can be replaced while it is in use.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._live = collections.OrderedDict()
        self._retired = []
        self._free = collections.deque(range(self.num_entries))
        self._changed = threading.Condition()

    @property
    def num_entries(self) -> int:
        """The number of indices: one more than `capacity`."""
        return self.capacity + 1

    def names(self) -> list[str]:
        """Returns the names of all adapters, least recently used first."""
        with self._changed:
            return list(self._live)

    def get(self, name: str) -> Entry:
        """Returns the entry of an adapter.

        Raises:
            AdapterError: If the bank has no adapter of that name.
        """
        with self._changed:
            return self._get(name)

    def in_order(self) -> list[Entry]:
        """Returns the entries of all adapters, sorted by index."""
        with self._changed:
            return sorted(self._live.values(), key=lambda e: e.index)

    @contextlib.contextmanager
    def using(self, names: Sequence[str]) -> Iterator[UsedEntries]:
        """Context manager that yields the `UsedEntries` of the named adapters.

        Within the `with` block, these adapters are not overwritten.

        Raises:
            AdapterError: If the bank has no adapter of one of the names.
        """
        with self._changed:
            entries = [self._get(name) for name in names]
            for name, entry in zip(names, entries, strict=True):
                entry.uses += 1
                self._live.move_to_end(name)
        try:
            yield UsedEntries(entries)
        finally:
            with self._changed:
                for entry in entries:
                    entry.uses -= 1
                self._changed.notify_all()

    def set_pinned(self, name: str, is_pinned: bool) -> None:
        """Sets whether an adapter is protected from being overwritten."""
        with self._changed:
            self._get(name).is_pinned = is_pinned

    def claim(self, name: str, timeout: float) -> Claim:
        """Makes room for a new adapter.

        If the bank is full and has no adapter of that name, the least recently
        used adapter that is not pinned is removed.

        Args:
            name: Name of the new adapter.
            timeout: Maximum number of seconds to wait for requests that use the
                removed adapters.

        Returns:
            `Claim`.

        Raises:
            AdapterError: If all adapters are pinned.
            BankBusyError: If requests do not end in time.
        """
        with self._changed:
            evicted = None
            if name not in self._live and len(self._live) >= self.capacity:
                oldest = self._least_recently_used()
                evicted = oldest, self._live[oldest]
                self._retire(oldest)
            freed: list[Entry] = []
            is_free = self._changed.wait_for(
                lambda: self._collect(freed) or self._free, timeout
            )
            if not is_free:
                self._revive(evicted)
                raise BankBusyError(
                    f"The adapter `{cut(name)}` was not added: requests used "
                    f"the adapters that it could replace for {timeout:g} "
                    "seconds. End them, or give the bank a larger `capacity`."
                )
            return Claim(self._free.popleft(), freed, evicted)

    def undo(self, claim: Claim) -> list[Entry]:
        """Undoes a claim, before anything was written there.

        Returns:
            The entries among the claim's `freed` whose rows are in use again.
        """
        with self._changed:
            self._free.append(claim.index)
            return self._revive(claim.evicted)

    def publish(self, name: str, entry: Entry) -> None:
        """Adds the entry of an adapter; replaces the entry of the same name."""
        with self._changed:
            if name in self._live:
                self._retire(name)
            self._live[name] = entry

    def remove(self, name: str) -> None:
        """Removes an adapter. Requests that are using it can finish."""
        with self._changed:
            self._get(name)
            self._retire(name)

    def give_back(self, index: int) -> None:
        """Frees an index from `claim` that was not used after all."""
        with self._changed:
            self._free.append(index)

    def _get(self, name: str) -> Entry:
        if name not in self._live:
            known = ", ".join(self._live) or "none"
            raise AdapterError(
                f"The bank has no adapter `{cut(name)}`. It has: {cut(known)}."
            )
        return self._live[name]

    def _least_recently_used(self) -> str:
        for name, entry in self._live.items():
            if not entry.is_pinned:
                return name
        raise AdapterError(
            f"The bank is full: all of its {self.capacity} adapters are "
            "pinned. Unpin or remove one, or give it a larger `capacity`."
        )

    def _retire(self, name: str) -> None:
        self._retired.append(self._live.pop(name))

    def _revive(self, evicted: tuple[str, Entry] | None) -> list[Entry]:
        """Adds a removed adapter again, as the least recently used one.

        Returns a list with its entry if its rows were free, or an empty list.
        """
        if evicted is None:
            return []
        name, entry = evicted
        was_retired = any(other is entry for other in self._retired)
        self._retired = [e for e in self._retired if e is not entry]
        if not was_retired:
            self._free.remove(entry.index)
        self._live[name] = entry
        self._live.move_to_end(name, last=False)
        return [] if was_retired else [entry]

    def _collect(self, freed: list[Entry]) -> None:
        """Moves removed, unused entries to `freed`, and frees their indices."""
        unused = [entry for entry in self._retired if not entry.uses]
        self._retired = [entry for entry in self._retired if entry.uses]
        self._free.extend(entry.index for entry in unused)
        freed.extend(unused)
