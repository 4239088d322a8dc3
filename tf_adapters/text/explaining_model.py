"""A Keras model that explains its answers to texts."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.text import columns
from tf_adapters.text import device_memory
from tf_adapters.text.answering_model import AnsweringModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from tf_adapters.explain.explanation import Explanation
    from tf_adapters.models.adapter_model import AdapterModel


class ExplainingModel(AnsweringModel):
    """Implements `explain` on texts."""

    def disabled(self) -> AbstractContextManager[AnsweringModel]:
        """Disables the active adapter within a `with` block."""
        raise NotImplementedError

    def explain(
        self,
        x: Any,
        text: str | Sequence[str] | None = None,
        label: str | None = None,
    ) -> list[Explanation]:
        """Explains the answer to each text.

        An explanation says which words decide, how far each block's adapter
        moves each word, what the model answers without its adapter and without
        the adapter of each block, and which members of a fusion each word uses.
        It takes about as many forward passes as a text has words. Of a text
        that is cut at `max_length`, the words that the model reads are
        explained.

        Args:
            x: Texts, see `predict`, but not a `tf.data.Dataset`.
            text: See `fit`.
            label: Name of the class to explain. `None` (default) explains the
                answer.

        Returns:
            List with an `Explanation` for each text.

        Raises:
            UserError: If the head's answers cannot be explained (choices,
                vectors, masked tokens), a text is read in several windows, the
                adapter is folded, or the memory of the device does not suffice.

        Examples:
            >>> model = tf_adapters.TextModel(
            ...     encoder, tokenizer, labels=("negative", "positive")
            ... )
            >>> explanation = model.explain(["a fine film"])[0]
            >>> explanation.words
            ('[CLS]', 'a', 'fine', 'film', '[SEP]')
            >>> [variant.name for variant in explanation.variants][:3]
            ['complete', 'without the adapter', 'without all blocks']
        """
        from tf_adapters.explain import explain

        if columns.is_dataset(x) or self._takes_features(x):
            raise UserError(
                "Explanations are of texts: pass a list of texts, pairs or "
                f"rows. Received: {shown(x)}"
            )
        rows = self._rows(x, None, text=text, labeled=False)
        with device_memory.in_explanations(self.adapter_model):
            return explain.explain_rows(
                self.adapter_model,
                self.preprocessor.packer,
                list(rows),
                rows.fields,
                self._without_adapter,
                label,
            )

    @contextlib.contextmanager
    def _without_adapter(self) -> Iterator[AdapterModel]:
        with self.disabled() as model:
            yield model.adapter_model
