"""Sizes of tasks and encoders, for estimates of a study's cost.

Numbers of rows are from TensorFlow Datasets' catalog if it has the task, from
table 8 of He et al. 2021 for its tasks, and from the public files for others.
Numbers of tokens are means over a sample of 400 texts that MiniLM's tokenizer
splits, including special tokens. If the number is that of a similar task, a
comment names the task.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class TaskSize:
    """Numbers of examples and tokens in a task's data.

    Attributes:
        train: Number of training examples.
        validation: Number of validation examples, including MNLI's mismatched
            examples.
        test: Number of labeled test examples in one language.
        tokens: Mean number of tokens in a text.
        texts: Number of choices of an example, or 1 if it has no choices.
    """

    train: int
    validation: int
    test: int
    tokens: float
    texts: int = 1


TASKS = {
    "cola": TaskSize(8551, 1043, 0, 11.1),
    "sst2": TaskSize(67349, 872, 0, 13.1),
    "mrpc": TaskSize(3668, 408, 0, 53.4),
    "stsb": TaskSize(5749, 1500, 0, 28.3),
    "qqp": TaskSize(363846, 40430, 0, 30.5),
    "mnli": TaskSize(392702, 9815 + 9832, 0, 39.0),
    "qnli": TaskSize(104743, 5463, 0, 48.9),
    "rte": TaskSize(2490, 277, 0, 69.4),
    "wnli": TaskSize(635, 71, 0, 39.0),  # Tokens of MNLI.
    "chemprot": TaskSize(4169, 2427, 3469, 68.7),
    "acl_arc": TaskSize(1688, 114, 139, 54.1),
    "scierc": TaskSize(3219, 455, 974, 45.5),
    "hyperpartisan": TaskSize(515, 65, 65, 770.7),
    "rct": TaskSize(180040, 30212, 30135, 45.5),  # Tokens of SciERC.
    "agnews": TaskSize(115000, 5000, 7600, 52.8),
    "helpfulness": TaskSize(115251, 5000, 25000, 286.2),  # Tokens of IMDB.
    "imdb": TaskSize(20000, 5000, 25000, 286.2),
    "sick": TaskSize(4500, 500, 4927, 22.2),
    "scitail": TaskSize(23097, 1304, 2126, 39.0),  # Tokens of MNLI.
    "cb": TaskSize(250, 56, 0, 83.3),
    "boolq": TaskSize(9427, 3270, 0, 136.9),
    "winogrande": TaskSize(40398, 1267, 0, 25.8, 2),
    "commonsenseqa": TaskSize(9741, 1221, 0, 19.5, 5),
    "socialiqa": TaskSize(33410, 1954, 0, 30.5, 3),
    "cosmosqa": TaskSize(25262, 2985, 0, 103.8, 4),
    "hellaswag": TaskSize(39905, 10042, 0, 84.1, 4),
    "squad": TaskSize(87599, 10570, 0, 177.7),
    "xnli": TaskSize(392702, 2490, 5010, 34.7),
    "pawsx": TaskSize(49175, 2000, 2000, 53.4),  # Tokens of MRPC.
    "ud_pos": TaskSize(21253, 3974, 5440, 29.3),
    "wikiann": TaskSize(20000, 10000, 10000, 13.9),
    "cf_airline": TaskSize(11712, 1464, 1464, 29.9),
    "cf_corporate_messaging": TaskSize(2494, 312, 312, 37.9),
    "cf_disasters": TaskSize(8688, 1086, 1086, 33.0),
    "sms_spam": TaskSize(4459, 557, 558, 25.4),
}


@dataclasses.dataclass(frozen=True)
class EncoderSize:
    """An encoder's number of blocks, hidden size and feed-forward size."""

    blocks: int
    width: int
    ffn_width: int

    @property
    def weights(self) -> Any:
        """Number of weights in the matrix multiplications of all blocks."""
        attention, ffn = 4 * self.width**2, 2 * self.width * self.ffn_width
        return self.blocks * (attention + ffn)


_BASE = EncoderSize(12, 768, 3072)
_LARGE = EncoderSize(24, 1024, 4096)
_E5_SMALL = EncoderSize(12, 384, 1536)
# The keys are names of folders, or of KerasHub presets without their language.
_ENCODERS = {
    "minilm": EncoderSize(6, 384, 1536),
    "bert_tiny": EncoderSize(2, 128, 512),
    "bert_small": EncoderSize(4, 512, 2048),
    "bert_medium": EncoderSize(8, 512, 2048),
    "bert_base": _BASE,
    "bert_large": _LARGE,
    "roberta_base": _BASE,
    "roberta_large": _LARGE,
    "xlm_roberta_base": _BASE,
    "xlm_roberta_large": _LARGE,
    "distil_bert_base": EncoderSize(6, 768, 3072),
    "electra_small": EncoderSize(12, 256, 1024),
    "electra_base": _BASE,
    "electra_large": _LARGE,
    "multilingual-e5-small": _E5_SMALL,
    "all-mpnet-base-v2": _BASE,
}


def encoder_size(name: str) -> "EncoderSize | None":
    """Returns the `EncoderSize` of an encoder, or `None` if it is unknown.

    Args:
        name: Name or folder of the encoder.
    """
    config = Path(name) / "config.json"
    if config.is_file():
        return _of_huggingface(json.loads(config.read_text(encoding="utf-8")))
    last = name.rstrip("/").rpartition("/")[2]
    for known, size in _ENCODERS.items():
        if last == known or last.startswith(f"{known}_"):
            return size
    return None


def _of_huggingface(config: dict[str, Any]) -> "EncoderSize | None":
    keys = ("num_hidden_layers", "hidden_size", "intermediate_size")
    if not all(isinstance(config.get(key), int) for key in keys):
        return None
    return EncoderSize(*(config[key] for key in keys))
