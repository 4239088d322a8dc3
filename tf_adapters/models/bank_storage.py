"""Adds, replaces and removes adapters of a bank while the bank is in use."""

from collections.abc import Iterable
from collections.abc import Sequence
import contextlib
import dataclasses
import os
import threading
from typing import Any

import numpy as np

from tf_adapters.common.checks import is_integer
from tf_adapters.common.errors import AdapterError
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.layers.banks.heads import count_outputs
from tf_adapters.models import trained_members
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.bank_core import BankCore
from tf_adapters.models.bank_core import count_rows
from tf_adapters.models.bank_entries import BankEntries
from tf_adapters.models.bank_entries import Entry
from tf_adapters.models.bank_entries import UsedEntries
from tf_adapters.models.bank_parts import PartReader
from tf_adapters.models.bank_parts import Place
from tf_adapters.models.bank_rows import BankRows
from tf_adapters.models.encoder_model import EncoderModel
from tf_adapters.models.trained_members import Member

# Seconds to wait for requests that use the adapters to be overwritten.
_TIMEOUT = 60.0


class BankStorage(EncoderModel):
    """Stores the adapters of a `BankModel` in rows of variables.

    `BankModel` adds the forward pass.

    Args:
        encoder: See `BankModel`.
        members: See `BankModel`.
        capacity: See `BankModel`.
        **kwargs: See `keras.Model`.
    """

    def __init__(
        self,
        encoder: Encoder,
        members: Sequence[Member],
        capacity: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(encoder, trainable=False, **kwargs)
        _check_capacity(capacity, len(members))
        # Held while an adapter is added or the bank grows, by one thread.
        self._writing = threading.RLock()
        self._reader = PartReader(encoder)
        arrays = [self._reader.read(member) for member in members]
        self._entries = BankEntries(capacity or len(members))
        self._rows = BankRows(count_rows(arrays))
        # In a list, because Keras notices if a layer is removed from a list.
        self._cores = [self._make_core(self._rows.num_rows)]
        # Widths of the outputs. `None` if `capacity` says that there may be
        # more adapters: the outputs then keep room for wider heads.
        self._widths = None if capacity else _widths(arrays)
        self.generation = 0
        self.built = True
        for member, of_member in zip(members, arrays, strict=True):
            self._write(member.name, member, of_member)

    def _make_core(
        self, num_rows: dict[Place, int], smaller: BankCore | None = None
    ) -> BankCore:
        return BankCore(
            self.encoder_info,
            num_rows,
            self._entries.num_entries,
            smaller,
            name="bank",
        )

    @property
    def core(self) -> BankCore:
        """The layer that computes the forward pass."""
        return self._cores[-1]

    @property
    def capacity(self) -> int:
        """The maximum number of adapters."""
        return self._entries.capacity

    @property
    def members(self) -> tuple[Member, ...]:
        """The adapters, without weights, in the order of their indices."""
        return tuple(entry.member for entry in self._entries.in_order())

    @property
    def names(self) -> list[str]:
        """The names of all adapters, the least recently used first."""
        return self._entries.names()

    def using(
        self, names: Sequence[str]
    ) -> contextlib.AbstractContextManager[UsedEntries]:
        """Looks up the adapters of a batch, for the duration of a `with` block.

        Adapters that are replaced or removed meanwhile are kept until the block
        ends. Do not use a graph in the block if the bank's `generation` changed
        after the graph was made and before the block began.

        Args:
            names: The name of each example's adapter.

        Raises:
            AdapterError: If the bank has no adapter of one of the names.
        """
        return self._entries.using(names)

    def add(
        self,
        adapter: str | os.PathLike[str] | AdapterModel | Member,
        name: str | None = None,
        pinned: bool = False,
    ) -> str:
        """Adds an adapter, or replaces the adapter of the same name.

        Args:
            adapter: Path of an adapter folder or of a run that contains one, an
                `AdapterModel`, or a `Member` of this encoder.
            name: Name of the adapter in the bank. Defaults to the name of the
                run's folder or of the model.
            pinned: Whether no other adapter may overwrite this one. Defaults to
                `False`.

        Returns:
            Name of the adapter in the bank.

        Raises:
            AdapterError: If the adapter is damaged or a bank cannot hold it, or
                if the bank is full of pinned adapters.
            UserError: If another model has changed the encoder.
        """
        with self._writing:
            # Norms and biases are stored as differences from the encoder's.
            self.check_encoder()
            member = trained_members.as_member(adapter, self.encoder_info)
            name = member.name if name is None else name
            if not isinstance(name, str):
                raise AdapterError(
                    f"`name` must be a text. Received: name={name!r:.100}"
                )
            arrays = self._reader.read(member)
            self._write(name, member, arrays, pinned)
        return name

    def remove(self, name: str) -> None:
        """Removes an adapter; raises an `AdapterError` if it is not there."""
        self._entries.remove(name)

    def pin(self, name: str) -> None:
        """Protects an adapter from being overwritten by others."""
        self._entries.set_pinned(name, True)

    def unpin(self, name: str) -> None:
        """Undoes `pin`."""
        self._entries.set_pinned(name, False)

    def reserve(self, num_adapters: int) -> None:
        """Makes room for adapters that are added later.

        Only the kinds of weights that the bank already has get more rows.

        Args:
            num_adapters: Total number of adapters for which each of the bank's
                variables has rows afterwards. The memory is allocated at once.
        """
        with self._writing:
            # 2 more rows: the neutral one, and one for the new version of an
            # adapter that is replaced while it is in use.
            self._grow(dict.fromkeys(self._rows.num_rows, 2 + num_adapters))

    def reserve_spare(self, least: int) -> None:
        """Makes room for some more adapters of each kind that the bank has.

        There is room for a quarter more, unless the bank cannot hold as many.

        Args:
            least: Minimum number of further adapters for which each of the
                bank's variables has rows afterwards.
        """
        with self._writing:
            most = self.capacity - len(self.names)
            self._grow(self._rows.with_spare(least, most))

    def num_bytes(self, name: str | None = None) -> int:
        """Returns the bytes of an adapter's rows, or by default of all rows."""
        if name is None:
            rows = self._rows.num_rows.items()
            return sum(place.kind.num_bytes * number for place, number in rows)
        places = self._entries.get(name).rows
        return sum(place.kind.num_bytes for place in places)

    def _write(
        self,
        name: str,
        member: Member,
        arrays: dict[Place, dict[str, np.ndarray]],
        pinned: bool = False,
    ) -> None:
        # First of all, as the new core may have outputs that these widths lack.
        self._check_widths(arrays)
        claim = self._entries.claim(name, _TIMEOUT)
        index = claim.index
        for entry in claim.freed:
            self._rows.give_back(entry.rows)
        try:
            self._grow(self._rows.doubled(arrays))
        except BaseException:  # There may be too little memory.
            for entry in self._entries.undo(claim):
                self._rows.take_back(entry.rows)
            raise
        rows = self._rows.take(arrays)
        try:
            self.core.write(index, rows, arrays)
        except BaseException:
            self._rows.give_back(rows)
            self._entries.give_back(index)
            raise
        (head,) = _widths([arrays]).items()
        member = dataclasses.replace(member, name=name, tensors={})
        self._entries.publish(name, Entry(index, member, rows, *head, pinned))

    def _grow(self, num_rows: dict[Place, int]) -> None:
        """Replaces the bank's core with a larger one if it has too few rows.

        The core is the layer that holds all adapters' weights. `num_rows` is a
        dict from `Place` to the minimum number of rows needed there.
        """
        before = self._rows.num_rows
        num_rows = {p: n for p, n in num_rows.items() if n > before.get(p, 1)}
        if not num_rows:
            return
        core = self._make_core({**before, **num_rows}, self.core)
        self._rows.grow(num_rows)
        self._cores.append(core)
        self._cores.pop(0)
        self._forget_graphs()
        self.generation += 1

    def _check_widths(self, arrays: dict[Place, Any]) -> None:
        """Widens the outputs if an adapter's head is wider than all others."""
        widths = self._widths
        if widths is not None and any(
            width > widths.get(name, 0)
            for name, width in _widths([arrays]).items()
        ):
            self._widths = None
            self._forget_graphs()
            self.generation += 1


def _check_capacity(capacity: int | None, num_members: int) -> None:
    least = max(1, num_members)
    if capacity is not None and not (
        is_integer(capacity) and capacity >= least
    ):
        raise AdapterError(
            f"`capacity` must be an integer of at least {least}, the number of "
            f"adapters. Received: capacity={capacity!r}"
        )


def _widths(adapters: Iterable[dict[Place, Any]]) -> dict[str, int]:
    """Returns the widest head's width for each output of `BankHeads`."""
    widths = {}
    for arrays in adapters:
        for place, weights in arrays.items():
            for name, width in count_outputs(place.kind, weights).items():
                widths[name] = max(width, widths.get(name, 0))
    return widths
