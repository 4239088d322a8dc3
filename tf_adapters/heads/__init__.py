"""Heads, one file for each kind of output.

A head owns everything about a kind of output, as methods of a frozen dataclass:

- `reads`: what it reads of the encoder; `make_layer()`: from that to outputs;
- `encode(rows, fields, packer, labelled)`: rows become `Encoded` examples;
- `loss(targets, outputs)`: the sum of each example's terms, `(batch,)`;
- `evaluate(names, outputs, targets, source)`: metrics of a whole set;
- `decode(outputs, source)`: a dict for each row, for people.

`outputs` in the last two has an array for each example, `source` is what
`encode` gave. Trainer and pipeline know no head by name.
"""

import dataclasses

from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import UserError
from tf_adapters.common.suggestions import check_known
from tf_adapters.heads.choice import Choice
from tf_adapters.heads.classification import Classification
from tf_adapters.heads.masked_lm import MaskedLM
from tf_adapters.heads.regression import Regression
from tf_adapters.heads.span import Span
from tf_adapters.heads.tagging import Tagging

HEADS = {
    "classification": Classification,
    "regression": Regression,
    "choice": Choice,
    "tagging": Tagging,
    "span": Span,
    "masked_lm": MaskedLM,
}


def for_task(task, doc_stride=128):
    """Returns the head of a task.

    Args:
        task: `Task`.
        doc_stride: See `Span.stride`.
    """
    if task.head == "classification":
        return Classification(labels=task.labels)
    if task.head == "tagging":
        return Tagging(labels=task.labels)
    if task.head == "choice":
        return Choice(blank=task.blank)
    if task.head == "span":
        return Span(stride=doc_stride)
    if task.head == "masked_lm":
        raise UserError(
            "A masked_lm head is made by `MaskedLM.for_encoder(encoder)`."
        )
    return HEADS[task.head]()


def to_config(head):
    """Returns a head as a dict of plain values with its `name`."""
    name = next(key for key, cls in HEADS.items() if cls is type(head))
    return {"name": name, **dataclasses.asdict(head)}


def from_config(config):
    """Returns the head that `to_config` described.

    Raises:
        UserError: If the name or a parameter is not known, or has the wrong
            type.
    """
    options = dict(config)
    name = options.pop("name")
    check_known("head", name, HEADS)
    return dataclass_config.from_dict(HEADS[name], options, "head.")
