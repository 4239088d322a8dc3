"""The special tokens of an encoder's inputs."""

import dataclasses
from typing import Any

import keras_hub

from tf_adapters.common.errors import UserError


@dataclasses.dataclass(frozen=True)
class SpecialTokens:
    """The special tokens around one or two texts.

    Attributes:
        start: Id before the first text.
        separators: Ids between the first text and the second.
        end: Id after the last text.
        pad: Id of padding.
        second_segment: Segment number of the second text, or `None` if the
            encoder has no segments.
    """

    start: int
    separators: tuple[int, ...]
    end: int
    pad: int
    second_segment: int | None

    @property
    def has_segments(self) -> bool:
        """Whether the encoder takes segment ids."""
        return self.second_segment is not None


def special_tokens_of(
    tokenizer: Any, takes_segments: bool | None = None
) -> "SpecialTokens":
    """Returns the `SpecialTokens` of a tokenizer from `load_encoder`.

    BERT, ELECTRA, DistilBERT, ALBERT and DeBERTa-v3: `[CLS] a [SEP] b [SEP]`.
    RoBERTa, XLM-R and MPNet: `<s> a </s></s> b </s>`.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
        takes_segments: See `TextPacker`.

    Raises:
        UserError: If the tokenizer is for another kind of encoder.
    """
    models = keras_hub.models
    if hasattr(tokenizer, "separator_ids"):
        separators = tuple(tokenizer.separator_ids)
        second_segment = tokenizer.second_segment
    elif isinstance(tokenizer, (models.BertTokenizer, models.ElectraTokenizer)):
        separators, second_segment = (tokenizer.end_token_id,), 1
    elif isinstance(tokenizer, models.DistilBertTokenizer):
        separators, second_segment = (tokenizer.end_token_id,), None
    elif isinstance(
        tokenizer, (models.RobertaTokenizer, models.XLMRobertaTokenizer)
    ):
        separators, second_segment = (tokenizer.end_token_id,) * 2, None
    else:
        raise UserError(
            "Expected a tokenizer of BERT, RoBERTa, XLM-R, DistilBERT or "
            f"ELECTRA. Received: {type(tokenizer).__name__}"
        )
    if takes_segments is None:
        takes_segments = bool(second_segment)
    return SpecialTokens(
        start=tokenizer.start_token_id,
        separators=separators,
        end=tokenizer.end_token_id,
        pad=tokenizer.pad_token_id,
        second_segment=(second_segment or 0) if takes_segments else None,
    )
