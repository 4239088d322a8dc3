"""Progress of long loops: a bar on a terminal, a line each tenth elsewhere."""

import sys
import time

import tqdm

# Loops that end sooner than this show nothing, unless they ask for it.
DELAY = 3.0
_LINE = "{desc}: {percentage:.0f}%, {n_fmt} of {total_fmt}, {elapsed}"
_LINE += "<{remaining}, {rate_fmt}{postfix}"


def progress_bar(total, description, initial=0, unit="ex", delay=0.0):
    """Returns what shows the progress of a loop on standard error.

    Args:
        total: Number of items in the loop, examples for instance.
        description: Text before the numbers. `None` shows nothing at all.
        initial: Items that an earlier process has done. Defaults to 0.
        unit: What the items are called. Defaults to `"ex"`, examples.
        delay: Seconds before anything is shown. Defaults to 0.

    Returns:
        Context manager with `update(count)`, `set_description(text)`,
        `set_postfix(dict)` and the number of items done, `n`. On a terminal it
        is a bar of `tqdm`; elsewhere, in a log file for example, a line is
        written each time that another tenth of the loop is done.
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
    """Writes a line to standard error for each tenth of a loop.

    Args:
        total: See `progress_bar`.
        description: See `progress_bar`.
        initial: See `progress_bar`.
        unit: See `progress_bar`.
        delay: See `progress_bar`.

    Attributes:
        n: Number of items done.
    """

    def __init__(self, total, description, initial=0, unit="ex", delay=0.0):
        self.total = total
        self.n = self._initial = initial
        self._description = description
        self._postfix = ""
        self._unit = unit
        self._delay = delay
        self._started = time.monotonic()
        self._is_shown = not delay

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def set_description(self, text):
        """Sets the text before the numbers of later lines."""
        self._description = text

    def set_postfix(self, values):
        """Sets values, a dict, that follow the numbers of later lines."""
        self._postfix = ", ".join(f"{k}={v}" for k, v in values.items())

    def update(self, count=1):
        """Counts items as done; writes a line if another tenth is full."""
        before, self.n = self.n, self.n + count
        if not self.total or self._tenths(self.n) == self._tenths(before):
            return
        elapsed = time.monotonic() - self._started
        # A loop that ends with its first line had no progress to follow.
        self._is_shown |= elapsed >= self._delay and self.n < self.total
        if self._is_shown:
            print(self._line(elapsed), file=sys.stderr, flush=True)

    def _tenths(self, count):
        return 10 * count // self.total

    def _line(self, elapsed):
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
