"""Loads adapters into a bank when they are needed."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
import threading
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.interop import formats
from tf_adapters.interop import hub
from tf_adapters.interop import hub_address
from tf_adapters.interop import stored_adapter
from tf_adapters.models import trained_members
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.bank_model import BankModel
from tf_adapters.serving.reading import reading_of
from tf_adapters.serving.request_error import RequestError
from tf_adapters.serving.sources import check_finished

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping
    from collections.abc import Sequence

    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.models.bank_entries import UsedEntries
    from tf_adapters.models.trained_members import Member
    from tf_adapters.serving.reading import Reading


class AdapterBank:
    """A `BankModel` that is filled from folders, and how its adapters read.

    It may be used by several threads.

    Args:
        encoder: The `Encoder` of all adapters.
        capacity: Maximum number of adapters. If there are more, the least
            recently used one is removed, and loaded again when it is needed.
    """

    def __init__(self, encoder: Encoder, capacity: int) -> None:
        self.encoder = encoder
        self.capacity = capacity
        self._longest = AdaptedEncoder(encoder).max_tokens
        self._bank: BankModel | None = None
        self._readings: dict[str, Reading] = {}
        self._loading = threading.RLock()

    @property
    def is_empty(self) -> bool:
        """Whether no adapter was loaded so far."""
        return self._bank is None

    @property
    def bank(self) -> BankModel:
        """The `BankModel`. There is none before an adapter was loaded."""
        if self._bank is None:
            raise AdapterError("No adapter was loaded.")
        return self._bank

    def reading(self, key: str) -> Reading:
        """Returns how an adapter that was loaded reads texts.

        Raises:
            AdapterError: If the adapter was removed.
        """
        found = self._readings.get(key)
        if found is None:
            raise AdapterError("The adapter was removed.")
        return found

    def load(self, key: str, source: str) -> dict[str, Any]:
        """Loads an adapter, unless it is there.

        Args:
            key: Name of the adapter in the bank.
            source: Path of a folder or `hf://` address.

        Returns:
            Dict of JSON values that describes the adapter.

        Raises:
            RequestError: With status 409 if the adapter belongs to another
                encoder.
            UserError: If the adapter is damaged, or a bank cannot hold it.
        """
        member = self._loaded(key)
        if member is None:
            # Others do not wait for a download. An adapter that was removed to
            # make room comes back from the Hub's cache, without asking the Hub.
            was_there = key in self._readings
            folder = _at_hand(source) if was_there else _local(source)
            with self._loading:
                member = self._loaded(key) or self._add(key, folder)
        return self._describe(key, member)

    def _loaded(self, key: str) -> Member | None:
        """Returns an adapter, or `None` if it is not there."""
        if self._bank is None:
            return None
        with contextlib.suppress(AdapterError), self._bank.using([key]) as used:
            return used.members[0]
        return None

    def load_first(self, sources: Mapping[str, str]) -> None:
        """Makes a bank of many adapters at once, if there is none yet.

        This takes less time than to load one after the other, because the
        bank's variables are made once. Adapters that cannot be read are left
        out.

        Args:
            sources: Dict from the name of each adapter in the bank to a path or
                address. Those beyond the bank's capacity are left out.
        """
        with self._loading:
            if self._bank is not None:
                return
            found = {}
            for key, source in list(sources.items())[: self.capacity]:
                with contextlib.suppress(UserError, RequestError, OSError):
                    found[key] = self._read(key, _local(source))
            # If a bank cannot hold one of them, all are loaded one by one.
            with contextlib.suppress(UserError):
                if found:
                    members = tuple(member for member, _ in found.values())
                    bank = BankModel(self.encoder, members, self.capacity)
                    self._readings = {k: found[k][1] for k in found}
                    self._bank = bank

    def _read(self, key: str, source: str) -> tuple[Member, Reading]:
        """Reads an adapter's folder, and checks what it says about texts."""
        check_finished(Path(source))
        stored = stored_adapter.find_stored(source)
        is_ours = stored.format == formats.OURS
        if is_ours:
            _check_encoder(stored.config["encoder"], self.encoder)
        member = trained_members.as_member(source, self.encoder)
        details = stored.config["details"] if is_ours else {}
        reading = reading_of(member.head, stored.path, details, self._longest)
        return dataclasses.replace(member, name=key), reading

    def _add(self, key: str, source: str) -> Member:
        """Reads an adapter, and puts it into the bank."""
        # Read first, because the bank removes another adapter for this one.
        member, reading = self._read(key, source)
        # Others may find the adapter as soon as it is in the bank.
        self._readings[key] = reading
        try:
            if self._bank is None:
                self._bank = BankModel(self.encoder, (member,), self.capacity)
            else:
                self._bank.add(member)
        except BaseException:
            del self._readings[key]
            raise
        return member

    def _describe(self, key: str, member: Member) -> dict[str, Any]:
        reading = self.reading(key)
        return {
            "fields": list(reading.possible_fields[0]),
            "labels": list(member.head.labels),
            "head": heads.name_of(member.head),
            "method": methods.name_of(member.method),
            "max_length": reading.max_length,
            "fingerprint": member.fingerprint,
        }

    def forget(self, key: str) -> None:
        """Removes an adapter, if it is there. Requests can still finish."""
        with self._loading:
            if self._bank is not None and key in self._bank.names:
                self._bank.remove(key)
            self._readings.pop(key, None)

    @contextlib.contextmanager
    def using(
        self, keys: Sequence[str], sources: Mapping[str, str]
    ) -> Iterator[UsedEntries]:
        """Context manager that yields the bank's entries of adapters.

        Adapters that are not in the bank are loaded first. Within the block,
        none of the adapters is removed.

        Args:
            keys: The name of each example's adapter. At most `capacity` of them
                differ.
            sources: Dict from each name to a path or address.

        Raises:
            UserError: If an adapter cannot be loaded.
        """
        with contextlib.ExitStack() as stack:
            yield self._entered(keys, sources, stack)

    def _entered(
        self,
        keys: Sequence[str],
        sources: Mapping[str, str],
        stack: contextlib.ExitStack,
    ) -> UsedEntries:
        """Enters the bank's `using` of adapters, and loads those removed."""
        with contextlib.suppress(AdapterError):
            return stack.enter_context(self.bank.using(keys))
        folders = {key: _at_hand(sources[key]) for key in dict.fromkeys(keys)}
        with self._loading, contextlib.ExitStack() as pins:
            for key, folder in folders.items():
                if self._loaded(key) is None:
                    self._add(key, folder)
                # Otherwise, the next adapter could take its place.
                self.bank.pin(key)
                pins.callback(self.bank.unpin, key)
            return stack.enter_context(self.bank.using(keys))


def _local(source: str) -> str:
    """Returns the path of an adapter, which is downloaded if needed."""
    is_address = hub_address.is_address(source)
    return str(hub.pull(source)) if is_address else source


def _at_hand(source: str) -> str:
    """Returns the path of an adapter that was there before.

    The Hub is asked only if its cache no longer has the adapter.
    """
    is_address = hub_address.is_address(source)
    return (
        str(hub.find_cached(source) or _local(source)) if is_address else source
    )


def _check_encoder(found: dict[str, Any], encoder: Encoder) -> None:
    """Raises a `RequestError` with status 409 for another encoder.

    Args:
        found: The adapter's encoder, as `adapter_config.json` describes it.
        encoder: `Encoder` of the server.
    """
    if found["fingerprint"] != encoder.fingerprint:
        raise RequestError(
            409,
            "The adapter was trained on an encoder with the fingerprint "
            f"{found['fingerprint']}, but the server has the encoder "
            f"`{encoder.name}` with the fingerprint {encoder.fingerprint}.",
        )
