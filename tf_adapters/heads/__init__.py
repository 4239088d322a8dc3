"""The heads: frozen dataclasses, one file for each kind of output.

`head.py` has their base class. A new head is listed here, so that it is
registered and editors know its name. The code of the trainer, data and export
does not refer to individual heads.
"""

import typing

from tf_adapters.heads.choice import Choice
from tf_adapters.heads.classification import Classification
from tf_adapters.heads.head import Head
from tf_adapters.heads.masked_lm import MaskedLM
from tf_adapters.heads.multilabel import MultiLabel
from tf_adapters.heads.registry import HEADS
from tf_adapters.heads.registry import for_task
from tf_adapters.heads.registry import from_config
from tf_adapters.heads.registry import name_of
from tf_adapters.heads.registry import register
from tf_adapters.heads.registry import to_config
from tf_adapters.heads.regression import Regression
from tf_adapters.heads.sentence_ranking import SentenceRanking
from tf_adapters.heads.sentence_vector import SentenceVector
from tf_adapters.heads.span import Span
from tf_adapters.heads.tagging import Tagging
from tf_adapters.tasks.output_kinds import OutputKind

__all__ = [
    "HEADS",
    "Choice",
    "Classification",
    "Head",
    "MaskedLM",
    "MultiLabel",
    "OutputKind",
    "Regression",
    "SentenceRanking",
    "SentenceVector",
    "Span",
    "Tagging",
    "for_task",
    "from_config",
    "name_of",
    "register",
    "to_config",
]
# Some modules have the name of a registered head, such as `span`. A user who
# writes `heads.span()` would get the module, which cannot be called. Without
# these names, Python calls `__getattr__`, whose error names the class `Span`.
for _name in HEADS.keys() & globals().keys():
    del globals()[_name]


def __getattr__(name: str) -> typing.Any:
    raise HEADS.no_attribute(__name__, name)
