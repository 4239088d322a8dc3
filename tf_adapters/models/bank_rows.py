"""Records which rows of a bank's layers are free."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tf_adapters.models.bank_parts import Place


class BankRows:
    """Hands out rows of a bank's layers to adapters.

    There is one layer at each `Place`. Row 0 of each layer is for adapters that
    have no weights there, so it is never handed out.

    Args:
        num_rows: Dict from `Place` to the number of rows there, at least 1.
    """

    def __init__(self, num_rows: dict[Place, int]) -> None:
        self.num_rows = dict(num_rows)
        self._free = {p: list(range(n - 1, 0, -1)) for p, n in num_rows.items()}

    def take(self, places: Iterable[Place]) -> dict[Place, int]:
        """Takes a free row at each place; returns a dict from place to row."""
        return {place: self._free[place].pop() for place in places}

    def give_back(self, rows: dict[Place, int]) -> None:
        """Frees rows that `take` returned."""
        for place, row in rows.items():
            self._free[place].append(row)

    def take_back(self, rows: dict[Place, int]) -> None:
        """Undoes `give_back`."""
        for place, row in rows.items():
            self._free[place].remove(row)

    def doubled(self, places: Iterable[Place]) -> dict[Place, int]:
        """Returns a dict from each full place to twice its number of rows."""
        return {
            place: 2 * self.num_rows.get(place, 1)
            for place in places
            if not self._free.get(place)
        }

    def with_spare(self, least: int, most: int) -> dict[Place, int]:
        """Returns a dict from each place to a number of rows, some spare.

        Args:
            least: Integer. Minimum number of spare rows.
            most: Integer. Maximum number of spare rows, unless `least` is
                larger. Up to it, there is one for every four used rows.
        """
        found = {}
        for place, number in self.num_rows.items():
            used = number - len(self._free[place])
            found[place] = used + max(least, min(used // 4, most))
        return found

    def grow(self, num_rows: dict[Place, int]) -> None:
        """Adds free rows so that each place has the number in `num_rows`."""
        for place, number in num_rows.items():
            first = self.num_rows.get(place, 1)
            self._free.setdefault(place, []).extend(
                range(number - 1, first - 1, -1)
            )
            self.num_rows[place] = max(first, number)
