"""Builds the encoder, model and trainer of a run, to evaluate and predict."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import keras
import tensorflow as tf

from tf_adapters import heads
from tf_adapters.data.batches import pipeline
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.data.tokens.packer_choice import packer_of
from tf_adapters.encoders.load import load_encoder
from tf_adapters.interop import stored_adapter
from tf_adapters.models import composed_model
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.runs import compatibility
from tf_adapters.runs import hub_members
from tf_adapters.runs import new_model
from tf_adapters.runs import pretraining_task
from tf_adapters.runs import strategies
from tf_adapters.training.finite import check_outputs

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.data.examples import Examples
    from tf_adapters.heads.head import Head
    from tf_adapters.runs.run_folder import RunFolder
    from tf_adapters.tasks.task import Task
    from tf_adapters.training.trainer import Trainer


class Experiment:
    """Encoder, model and trainer of one configuration.

    Args:
        config: `Config`.
        task: `Task` with resolved labels.
        adapter: Path of a trained adapter folder to load. Default: `None`,
            which creates a new model.
        sibling: Another `Experiment`, whose encoder this one shares. Default:
            `None`, which loads the encoder.
        train_rows: Training rows, from which a new head may compute statistics,
            or `None` (default).
        strategy: `tf.distribute.Strategy`. Default: the strategy that the
            configuration names.
    """

    def __init__(
        self,
        config: Config,
        task: Task,
        adapter: Any = None,
        sibling: Experiment | None = None,
        train_rows: list[dict[str, Any]] | None = None,
        strategy: tf.distribute.Strategy | None = None,
    ) -> None:
        self.config = config
        self.task = task
        compatibility.check_languages(
            *(config.language_adapters or (), config.data.eval_languages, task)
        )
        compatibility.check_windows(config.data.windows, task)
        self.strategy = strategy or strategies.strategy_of(config)
        if sibling is None:
            keras.utils.set_random_seed(config.seed)
            _make_deterministic(config)
            self._load_encoder()
        else:
            self.encoder = sibling.encoder
            self.tokenizer, self.packer = sibling.tokenizer, sibling.packer
        with self.strategy.scope():
            if adapter is None:
                self.model: AdapterModel = new_model.make_model(
                    config, task, self.encoder, train_rows
                )
            else:
                self.model = self._load_model(adapter)
        self.trainer = self.trainer_of(self.model, self._trained())

    def _load_encoder(self) -> None:
        name, max_length = self.config.encoder, self.config.data.max_length
        with self.strategy.scope():
            self.encoder, self.tokenizer = load_encoder(
                name,
                dtype=self.config.train.precision,
                quantize=self.config.quantize,
            )
        compatibility.check_length(max_length, self.encoder, name)
        self.packer = packer_of(
            self.tokenizer, max_length, self.encoder.takes_segments
        )
        self.packer.progress_title = "tokenizing"

    def _load_model(self, adapter: Any) -> AdapterModel:
        """Loads the model from an adapter folder, for this run's task."""
        hub_members.check_are_here(self.config)
        # If the folder of the adapter below has moved, `load_adapter` finds it.
        below = self.config.stack_on
        is_there = below and stored_adapter.find_stored(below).path.is_dir()
        model = saving.load_adapter(
            adapter,
            self.encoder,
            self.config.method.adapters or None,
            below=below if is_there else None,
            **new_model.model_options(self.config.train),
        )
        compatibility.check_labels(model.head, self.task, adapter)
        model.head = self._with_settings(model.head)
        # Slots that were left out in training do not exist here anyway.
        model.leave_out(self.config.method.leave_out)
        return model

    def _with_settings(self, head: Any) -> Head:
        """Returns a copy of a trained head with this run's inference settings.

        Settings that matter only in training keep their stored values.
        """
        settings = new_model.head_settings(self.config, self.task)
        own = {k: v for k, v in settings.items() if k in head.at_inference}
        return heads.from_config({**heads.to_config(head), **own})

    def trainer_of(self, model: AdapterModel, trained: Any = None) -> Trainer:
        """Returns a `Trainer` for a model, with the settings of this run.

        Args:
            model: `AdapterModel`.
            trained: See `Trainer`.
        """
        return strategies.trainer_class()(
            model,
            self.strategy,
            self.config.train,
            self.config.data,
            self.config.seed,
            self.task.metrics,
            trained,
        )

    def _trained(self) -> Any:
        """Returns the variables to train, in a dict keyed by variable name.

        Pretraining with `pretrain.adapters_only` trains only the adapters. Any
        other run trains all of the model's `trained_variables`.
        """
        trained = self.model.trained_variables()
        settings = self.config.pretrain
        if not (
            settings.adapters_only
            and settings.steps
            and pretraining_task.predicts_hidden_tokens(self.task)
        ):
            return trained
        groups = {n: some for n, _, some in self.model.variable_groups()}
        adapters = {id(variable) for variable in groups.get("adapters", ())}
        return {n: v for n, v in trained.items() if id(v) in adapters}

    def examples(
        self, rows: list[dict[str, Any]], labeled: bool = True
    ) -> Examples:
        """Encodes rows as the `Examples` that the trainer reads.

        Args:
            rows: Rows of one split.
            labeled: Whether the rows have labels. Default: `True`.
        """
        encoded = self.model.head.encode(
            rows, self.task.text_fields, self.packer, labeled
        )
        return pipeline.to_tensors(encoded)

    def examples_by_split(
        self, rows: dict[str, list[dict[str, Any]]]
    ) -> dict[str, Examples]:
        """Encodes the rows of each split; returns `Examples` by split.

        Args:
            rows: Dict from split to labeled rows.
        """
        return {split: self.examples(rows[split]) for split in rows}

    def transfer(
        self, languages: dict[str, Any], run: RunFolder | None = None
    ) -> dict[str, Any]:
        """Evaluates the model in other languages.

        Args:
            languages: Dict that `zero_shot_transfer.load_languages` returned.
            run: `RunFolder` to store the predictions in, or `None` (default).

        Returns:
            The summary of all languages' metrics; see
            `zero_shot_transfer.summarize`.
        """
        metrics = {}
        for language, (split, rows) in languages.items():
            self._stack_on(language)
            values, compared = self.trainer.judge(
                self.examples(rows), f"evaluating on {language}"
            )
            metrics[language] = (split, values)
            if run is not None:
                name = f"transfer/{language}"
                run.save_predictions(name, self.model.head, compared)
        self._stack_on(None)
        return zero_shot_transfer.summarize(self.task, metrics)

    def _stack_on(self, language: Any) -> None:
        """Stacks the trained adapter on the adapter of a language.

        If `language` has no adapter, stacks it on the adapter that the setting
        `stack_on` names. Does nothing if the run has no language adapters.
        """
        adapters = self.config.language_adapters
        if adapters:
            own = adapters.get(language, self.config.stack_on)
            composed_model.swap_adapters(self.model, own)

    def predict(self, rows: list[dict[str, Any]]) -> list[Any]:
        """Returns a prediction for each row, as a dict; see `Head.decode`.

        Raises:
            NonFiniteError: If outputs are NaN.
        """
        examples = self.examples(rows, labeled=False)
        outputs = self.trainer.predict(examples, "predicting")
        check_outputs(outputs)
        return self.model.head.decode(outputs, examples.source)


def _make_deterministic(config: Config) -> None:
    # On CPUs, runs are reproducible without this, and it would make them 10%
    # slower.
    if not tf.config.list_physical_devices("GPU"):
        return
    if config.train.deterministic:
        tf.config.experimental.enable_op_determinism()
    elif config.train.deterministic is None:
        print(
            "On a GPU, equal runs differ in the last digits. "
            "--params_override=train.deterministic=true makes them equal, "
            "and slower.",
            flush=True,
        )
