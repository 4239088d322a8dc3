"""Prompt tuning: Lester et al. 2021, arXiv:2104.08691."""

from collections.abc import Sequence
import dataclasses
import typing
from typing import Any

import keras
from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import initializers
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register

Stands = typing.Literal["before", "after_first"]


@register("prompt_tuning")
@dataclasses.dataclass(frozen=True)
class PromptTuning(Method):
    """Inserts trained vectors into the text, as if they were tokens.

    The encoder is frozen. `P` vectors of width `d` have `P d` weights. If the
    prompt comes before the text, a head that reads the first token reads a
    vector of the prompt, as in `adapters` and PEFT.

    Attributes:
        prompt_length: Number of vectors `P`; 10 in the `adapters` library.
        form: `"adapterhub"` (default): the vectors are inserted after the
            embeddings' norm and dropout, and the text's positions do not
            change. `"peft"`: they are inserted among the word embeddings,
            before positions, segments and norm, so the text's positions are
            shifted. The two forms compute different functions.
        stands: Position of the prompt: `"before"` (default) the text, or
            `"after_first"`, after its first token. The latter requires the
            form `"adapterhub"`.
        init_range: The vectors start uniform in `+-init_range`; 0.5 in the
            paper (section 3.2) and in the library.

    Examples:
        >>> method = methods.PromptTuning(prompt_length=5)
        >>> tuple(tf_adapters.adapt(encoder, method, head)(features).shape)
        (2, 2)
    """

    prompt_length: int = 10
    form: typing.Literal["adapterhub", "peft"] = "adapterhub"
    stands: Stands = "before"
    init_range: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prompt_length < 1:
            raise UserError(
                "A prompt has one or more vectors. Received: "
                f"prompt_length={self.prompt_length}"
            )
        if self.form == "peft" and self.stands != "before":
            raise UserError(
                "PEFT puts prompts before the text. Use `form='adapterhub'` "
                "with `stands='after_first'`."
            )

    def make_embedding_slots(self, shape: EncoderShape) -> dict[str, Slot]:
        """Returns a dict with the prompt's slot, keyed by its place.

        `form` selects the place, `"embeddings"` or `"word_embeddings"`.
        """
        of_words = self.form == "peft"
        place = "word_embeddings" if of_words else "embeddings"
        return {
            place: Prompt(
                self.prompt_length, self.stands, self.init_range, name="prompt"
            )
        }


@keras.saving.register_keras_serializable("tf_adapters")
class Prompt(Slot):
    """Slot that inserts the same trained vectors into each text of a batch.

    Args:
        length: Integer. Number of vectors `P`.
        stands: Position of the vectors: `"before"` (default) the text, or
            `"after_first"`, after its first token.
        init_range: The vectors start uniform in `+-init_range`. Defaults to
            0.5.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        length: int,
        stands: str = "before",
        init_range: float = 0.5,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_known("stands", stands, typing.get_args(Stands))
        self.length = length
        self.stands = stands
        self.init_range = init_range

    @property
    def num_added_tokens(self) -> int:
        """The number of inserted vectors."""
        return self.length

    @property
    def first_added_token(self) -> int:
        """The index of the first inserted vector."""
        return 0 if self.stands == "before" else 1

    def build(self, input_shape: Sequence[Any]) -> None:
        uniform = initializers.random_uniform(self.init_range)
        self.vectors = self.add_weight(
            (self.length, input_shape[-1]), uniform, name="vectors"
        )

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        vectors = ops.cast(self.vectors, x.dtype)[None]
        vectors = ops.repeat(vectors, ops.shape(x)[0], axis=0)
        first = self.first_added_token
        return ops.concatenate([x[:, :first], vectors, x[:, first:]], 1), {}
