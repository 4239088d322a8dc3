"""Cuts texts that are too long into overlapping windows."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import itertools
import logging
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError

if TYPE_CHECKING:
    from tf_adapters.data.tokens.packing import TextPacker


_LOGGER = logging.getLogger(__name__)
_TEXTS_AT_ONCE = 1024


@dataclasses.dataclass(frozen=True)
class Windows:
    """How a text is cut into windows, each with its own special tokens.

    Attributes:
        count: Largest number of windows of a text. Tokens after the last
            window are dropped.
        stride: Number of tokens between the starts of two windows. `None`
            (default) for three quarters of the tokens that fit into a window.
    """

    count: int
    stride: int | None = None

    def step(self, room: int) -> int:
        """Returns the number of tokens between the starts of two windows.

        Args:
            room: Number of a text's tokens that fit into a window.

        Raises:
            UserError: If `stride` is below 1, or larger than `room`, so that
                tokens between two windows would be skipped.
        """
        if self.stride is None:
            return max(1, 3 * room // 4)
        if not 0 < self.stride <= room:
            raise UserError(
                f"A window has room for {room} tokens between its special "
                f"tokens, so `window_stride` must be from 1 to {room}: a "
                "larger one would leave tokens between two windows unread. "
                f"Received: window_stride={self.stride}. Lower it, or raise "
                "`max_length`."
            )
        return self.stride

    def spans(self, length: int, room: Any) -> list[Any]:
        """Returns the windows as slices of a text's tokens, at least one.

        Args:
            length: Number of the text's tokens.
            room: See `step`.
        """
        found = window_spans(length, room, self.step(room))
        return list(itertools.islice(found, self.count)) or [slice(0, 0)]

    def reach(self, room: Any) -> Any:
        """Returns the largest number of tokens that the windows can cover.

        `room` is the number of a text's tokens that fit into a window.
        """
        return (self.count - 1) * self.step(room) + room


def window_spans(count: Any, room: Any, stride: Any) -> Iterator[Any]:
    """Yields slices of up to `room` tokens that cover `count` tokens.

    The starts of the slices are `stride` tokens apart.
    """
    start = 0
    while start < count:
        stop = min(start + room, count)
        yield slice(start, stop)
        if stop == count:
            return
        start += stride


def tokenize_windows(
    packer: "TextPacker", texts: Sequence[str], windows: Windows
) -> tuple[Any, ...]:
    """Tokenizes texts and cuts them into windows, without padding.

    Logs a warning if texts have more tokens than fit into their windows.

    Args:
        packer: `TextPacker` or `PythonPacker`.
        texts: List of strings.
        windows: `Windows`.

    Returns:
        Two lists: token ids, including special tokens, and segment ids. Each
        has a list for each text, with an int32 array for each window. The
        second list is `None` if the encoder has no segments.
    """
    special, room = packer.special_tokens, packer.max_length - 2
    ids, lengths = [], []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        for tokens in packer.token_arrays(texts[start:][:_TEXTS_AT_ONCE]):
            lengths.append(len(tokens))
            ids.append(
                [
                    np.array(
                        [special.start, *tokens[span], special.end]
                    ).astype("int32")
                    for span in windows.spans(len(tokens), room)
                ]
            )
    _say_cut(lengths, windows, room)
    if not special.has_segments:
        return ids, None
    return ids, [[np.zeros_like(one) for one in row] for row in ids]


def _say_cut(lengths: Any, windows: Windows, room: Any) -> None:
    reach = windows.reach(room)
    cut = sum(length > reach for length in lengths)
    if cut:
        _LOGGER.warning(
            "%s of %s texts are longer than %s windows hold, %s tokens: the "
            "rest is cut off. Raise `windows` to read more, the longest text "
            "has %s tokens.",
            *(f"{n:,}" for n in (cut, len(lengths), windows.count, reach)),
            f"{max(lengths):,}",
        )
