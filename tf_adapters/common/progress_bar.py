"""Shows the progress of a loop.

On a terminal, it is a bar. Elsewhere, it is a line after each tenth of the
steps.
"""

import sys
import time
from typing import Any
from typing import Self

import tqdm

# In seconds. A loop with this delay shows no progress if it ends sooner.
DELAY = 3.0
_LINE = "{desc}: {percentage:.0f}%, {n_fmt} of {total_fmt}, {elapsed}"
_LINE += "<{remaining}, {rate_fmt}{postfix}"


def progress_bar(
    total: int,
    description: str | None,
    initial: int = 0,
    unit: str = "ex",
    delay: float = 0.0,
) -> "tqdm.tqdm[Any] | TenthLines":
    """Returns a context manager that shows progress on standard error.

    Args:
        total: Total number of items in the loop, such as examples.
        description: Text before the numbers. If `None`, nothing is shown.
        initial: Number of items that an earlier process has done. Defaults to
            0.
        unit: Name of an item. Defaults to `"ex"`, for examples.
        delay: Seconds before progress is shown. Defaults to 0.

    Returns:
        Context manager with `update(count)`, `set_description(text)`,
        `set_postfix(dict)` and `n`, the number of items done. On a terminal, it
        is a `tqdm` bar. Otherwise, for example in a log file, it writes a line
        after each tenth of the loop.
    """
    if description is None or sys.stderr is None or sys.stderr.isatty():
        return tqdm.tqdm(
            total=total,
            desc=description,
            initial=initial,
            unit=unit,
            delay=delay,
            dynamic_ncols=True,
            disable=description is None or sys.stderr is None,
        )
    return TenthLines(total, description, initial, unit, delay)


class TenthLines:
    """Writes a line to standard error after each tenth of a loop.

    Args:
        total: See `progress_bar`.
        description: See `progress_bar`.
        initial: See `progress_bar`.
        unit: See `progress_bar`.
        delay: See `progress_bar`.

    Attributes:
        n: Number of items done.
    """

    def __init__(
        self,
        total: int,
        description: str,
        initial: int = 0,
        unit: str = "ex",
        delay: float = 0.0,
    ) -> None:
        self.total = total
        self.n = self._initial = initial
        self._description = description
        self._postfix = ""
        self._unit = unit
        self._delay = delay
        self._started = time.monotonic()
        self._is_shown = not delay

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def set_description(self, text: str) -> None:
        """Sets the text with which all later lines begin."""
        self._description = text

    def set_postfix(self, values: dict[str, Any]) -> None:
        """Sets a dict of values that all later lines show at their end."""
        self._postfix = ", ".join(f"{k}={v}" for k, v in values.items())

    def update(self, count: int = 1) -> None:
        """Adds `count` to the items done. Writes a line after each tenth."""
        before, self.n = self.n, self.n + count
        if not self.total or self._tenths(self.n) == self._tenths(before):
            return
        elapsed = time.monotonic() - self._started
        # If the first line would be the last one, it is not worth showing.
        self._is_shown |= elapsed >= self._delay and self.n < self.total
        if self._is_shown:
            print(self._line(elapsed), file=sys.stderr, flush=True)

    def _tenths(self, count: int) -> int:
        return 10 * count // self.total

    def _line(self, elapsed: float) -> str:
        return tqdm.tqdm.format_meter(
            self.n,
            self.total,
            elapsed,
            unit=self._unit,
            prefix=self._description,
            postfix=self._postfix,
            initial=self._initial,
            bar_format=_LINE,
        )
