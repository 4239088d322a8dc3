"""Builds the model of a run that is about to train."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models import composed_model
from tf_adapters.models import fusion_model
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.composition import Stack

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.config.settings import TrainConfig
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.tasks.task import Task


def make_model(
    config: Config,
    task: Task,
    encoder: Encoder,
    train_rows: list[dict[str, Any]] | None,
) -> AdapterModel:
    """Returns a new model with the method and adapters of a run.

    Args:
        config: `Config` of the run.
        task: `Task` with resolved labels.
        encoder: `Encoder`.
        train_rows: Training rows, from which the head may compute statistics,
            or `None`.
    """
    method, options = config.method, model_options(config.train)
    head = heads.for_task(task, encoder, **head_settings(config, task))
    if train_rows is not None:
        head = head.for_rows(train_rows)
    if config.stack_on:
        stack = Stack(config.stack_on, method)
        model: Any = composed_model.compose(encoder, stack, head, **options)
    elif isinstance(method, methods.Fusion):
        model = fusion_model.fuse(encoder, method, head, **options)
    else:
        model = adapt(encoder, method, head, **options)
    if config.init_adapter:
        saving.start_from(model, config.init_adapter)
    return model


def model_options(train: TrainConfig) -> dict[str, Any]:
    """Returns a dict of the arguments with which to create a run's model."""
    return {"use_encoder_dropout": train.encoder_dropout, "remat": train.remat}


def head_settings(config: Config, task: Task) -> dict[Any, Any]:
    """Returns a dict of the arguments with which to create a task's head."""
    known = {
        "stride": config.data.doc_stride,
        "windows": config.data.windows,
        "window_stride": config.data.window_stride,
        "pooling": config.data.pooling,
        "whole_words": config.pretrain.whole_words,
        "seed": config.seed,
    }
    fields = dataclasses.fields(heads.HEADS[task.head])
    names = {field.name for field in fields}
    # Values in `config.head` override the values above.
    own = {key: value for key, value in known.items() if key in names}
    given = config.head or {}
    if task.kind.is_pretraining and config.pretrain.steps:
        # `config.head` is for the head of the task that follows. The settings
        # of a task of masked tokens have names that no other head has.
        masking = ("mask_share", "whole_words")
        given = {name: given[name] for name in masking if name in given}
    return own | given
