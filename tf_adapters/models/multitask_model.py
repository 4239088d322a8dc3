"""Combines the models of several tasks on one encoder."""

import dataclasses
import os
from pathlib import Path
from typing import Any
from typing import cast

import keras

from tf_adapters import methods
from tf_adapters.common import moved_folders
from tf_adapters.encoders.encoder import encoder_fingerprint
from tf_adapters.models import adapter_writing
from tf_adapters.models import saving
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.adapter_reading import plugins_of


class MultiTaskModel:
    """The models of several tasks that share the encoder's variables.

    Args:
        models: Dict from task to `AdapterModel` with `methods.MultiTask`, all
            built on one `Encoder`.
    """

    def __init__(self, models: dict[str, AdapterModel]) -> None:
        self.models = models
        first, *others = models.values()
        for model in others:
            # The tasks train the encoder together, so they are one user of it.
            model.encoder_user = first.encoder_user

    @property
    def encoder(self) -> AdaptedEncoder:
        """The `AdaptedEncoder` of the first task's model."""
        return next(iter(self.models.values())).encoder

    def variable_groups(self) -> list[tuple[str, bool, list[keras.Variable]]]:
        """Returns a list of (group name, whether it trains, variables).

        Like `AdapterModel.variable_groups`, but lists shared weights only once.
        """
        groups, seen = [], set()
        for task, model in self.models.items():
            for name, trains, variables in model.variable_groups():
                new = [v for v in variables if id(v) not in seen]
                seen.update(map(id, new))
                own = name in ("adapters", "head")
                if new:
                    name = f"{task}: {name}" if own else name
                    groups.append((name, trains, new))
        return groups

    def trained_variables(self) -> dict[str, keras.Variable]:
        """Returns all trained variables, in a dict from name to variable.

        The names of a task's own variables begin with the task's name.
        """
        named = {}
        for task, model in self.models.items():
            own = self.own_variables(task)
            for path, variable in model.trained_variables().items():
                named[f"{task}/{path}" if path in own else path] = variable
        return named

    def last_phase_step(self, total_steps: int) -> int:
        """Returns 0, because the training of several tasks has one phase.

        See `AdapterModel.last_phase_step`.
        """
        return 0

    def own_variables(self, task: str) -> dict[str, keras.Variable]:
        """Returns the variables that only `task` trains, in a dict by path."""
        shared = {id(v) for v in self.encoder.backbone.weights}
        return {
            path: variable
            for path, variable in self.models[task].trained_variables().items()
            if id(variable) not in shared
        }

    def save_encoder(
        self,
        folder: str | os.PathLike[str],
        details: dict[str, Any] | None = None,
    ) -> tuple[str, str]:
        """Writes the trained encoder to a folder that `load_encoder` reads.

        The folder is an adapter folder of method `full` without a head.

        Returns:
            The encoder's name, which is `folder`, and its fingerprint.
        """
        model = next(iter(self.models.values()))
        config = {
            **saving.describe_adapter(model, details),
            "method": methods.to_config(methods.Full()),
            "head": None,
        }
        tensors = {v.path: v.numpy() for v in self.encoder.used_variables()}
        adapter_writing.write_adapter(folder, config, tensors, overwrite=True)
        trained = dataclasses.replace(model.encoder_info, name=str(folder))
        return trained.name, encoder_fingerprint(trained)

    def save_adapter(
        self,
        task: str,
        folder: str | os.PathLike[str],
        encoder: tuple[str, str] | None,
        details: dict[str, Any] | None = None,
    ) -> None:
        """Writes an adapter folder with the weights that only one task trained.

        Args:
            task: Name of the task.
            folder: Path.
            encoder: Name and fingerprint of the trained encoder, or `None` if
                the encoder was not trained.
            details: See `saving.save_adapter`.
        """
        model = self.models[task]
        adapter = cast("Any", model.method).adapter
        config = saving.describe_adapter(model, details)
        config["method"] = methods.to_config(adapter)
        config["plugins"] = plugins_of(adapter, model.head)
        if encoder is not None:
            name, fingerprint = encoder
            # A relative path stays valid if both folders move together.
            name = moved_folders.relative_path(Path(name), Path(folder)) or name
            config["encoder"].update(name=name, fingerprint=fingerprint)
        own = self.own_variables(task)
        tensors = {path: variable.numpy() for path, variable in own.items()}
        tensors = adapter.gating.pack(tensors)
        adapter_writing.write_adapter(folder, config, tensors, overwrite=True)
