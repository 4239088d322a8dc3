"""What a run computes with: encoder, model, trainer, and what they give."""

import dataclasses

import keras
import tensorflow as tf

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.data.batches import pipeline
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders.load import load_encoder
from tf_adapters.interop import stored_adapter
from tf_adapters.models import composed_model
from tf_adapters.models import fusion_model
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.composition import Stack
from tf_adapters.runs import compatibility
from tf_adapters.runs import hub_members
from tf_adapters.runs import pretraining_task
from tf_adapters.training import distribution
from tf_adapters.training.trainer import Trainer


class Experiment:
    """Encoder, model and trainer of one configuration.

    Args:
        config: `Config`.
        task: `Task`, its labels resolved.
        adapter: Folder of a trained adapter to start from, or `None`.
        sibling: `Experiment` whose encoder this one shares, or `None`.
        train_rows: Training rows, which a new head may take numbers from.
    """

    def __init__(
        self, config, task, adapter=None, sibling=None, train_rows=None
    ):
        self.config = config
        self.task = task
        _check_languages(config, task)
        compatibility.check_windows(config, task)
        self.strategy = distribution.strategy_for_config(config)
        if sibling is None:
            keras.utils.set_random_seed(config.seed)
            _make_deterministic(config)
            self._load_encoder()
        else:
            self.encoder = sibling.encoder
            self.tokenizer, self.packer = sibling.tokenizer, sibling.packer
        with self.strategy.scope():
            if adapter is None:
                self.model = self._make_model(train_rows)
            else:
                self.model = self._load_model(adapter)
        self.trainer = self.trainer_of(self.model, self._trained())

    def _load_encoder(self):
        with self.strategy.scope():
            self.encoder, self.tokenizer = load_encoder(
                self.config.encoder, dtype=self.config.train.precision
            )
        compatibility.check_length(self.config, self.encoder)
        self.packer = TextPacker(
            self.tokenizer,
            self.config.data.max_length,
            self.encoder.takes_segments,
        )
        self.packer.progress_title = "tokenizing"

    @property
    def _model_options(self):
        return {
            "use_encoder_dropout": self.config.train.encoder_dropout,
            "remat": self.config.train.remat,
        }

    def _load_model(self, adapter):
        """Returns the model in an adapter folder."""
        hub_members.check_are_here(self.config)
        # A run that moved knows by itself where what it stood on is now.
        below = self.config.stack_on
        is_there = below and stored_adapter.find_stored(below).path.is_dir()
        model = saving.load_adapter(
            adapter,
            self.encoder,
            self.config.method.adapters or None,
            below=below if is_there else None,
            **self._model_options,
        )
        compatibility.check_labels(model.head, self.task, adapter)
        model.head = self._with_settings(model.head)
        # What the run's own configuration leaves out has no slots anyway.
        model.leave_out(self.config.method.leave_out)
        return model

    def _with_settings(self, head):
        """Returns a trained head with what may be set anew of it."""
        settings = head_settings(self.config, self.task)
        own = {k: v for k, v in settings.items() if k in head.at_inference}
        return heads.from_config({**heads.to_config(head), **own})

    def _make_model(self, train_rows):
        """Returns a new model, on other adapters where those are named."""
        method, options = self.config.method, self._model_options
        head = self._make_head(train_rows)
        if self.config.stack_on:
            stack = Stack(self.config.stack_on, method)
            model = composed_model.compose(self.encoder, stack, head, **options)
        elif isinstance(method, methods.Fusion):
            model = fusion_model.fuse(self.encoder, method, head, **options)
        else:
            model = adapt(self.encoder, method, head, **options)
        if self.config.init_adapter:
            saving.start_from(model, self.config.init_adapter)
        return model

    def trainer_of(self, model, trained=None):
        """Returns a `Trainer` of a model, with the settings of this run.

        Args:
            model: `AdapterModel`.
            trained: See `Trainer`.
        """
        return Trainer(
            model, self.strategy, self.config, self.task.metrics, trained
        )

    def _trained(self):
        """Returns what trains, by name: all that is declared, but for TAPT."""
        trained = self.model.trained_variables()
        if not pretraining_task.trains_adapters_only(self.config, self.task):
            return trained
        groups = {n: some for n, _, some in self.model.variable_groups()}
        adapters = {id(variable) for variable in groups.get("adapters", ())}
        return {n: v for n, v in trained.items() if id(v) in adapters}

    def _make_head(self, train_rows):
        settings = head_settings(self.config, self.task)
        head = heads.for_task(self.task, self.encoder, **settings)
        return head if train_rows is None else head.for_rows(train_rows)

    def examples(self, rows, labelled=True):
        """Returns rows as `Examples`."""
        encoded = self.model.head.encode(
            rows, self.task.text_fields, self.packer, labelled
        )
        return pipeline.to_examples(encoded, self.packer.special_tokens.pad)

    def examples_by_split(self, rows):
        """Returns the `Examples` of a dict from split to rows."""
        return {split: self.examples(rows[split]) for split in rows}

    def transfer(self, languages, run=None):
        """Returns the metrics in other languages, see `zero_shot_transfer`.

        Args:
            languages: What `load_languages` returned.
            run: `RunFolder` for the predictions, or `None` (default).
        """
        metrics = {}
        for language, (split, rows) in languages.items():
            self._stand_on(language)
            values, compared = self.trainer.judge(
                self.examples(rows), f"evaluating on {language}"
            )
            metrics[language] = (split, values)
            if run is not None:
                name = f"transfer/{language}"
                run.save_predictions(name, self.model.head, compared)
        self._stand_on(None)
        return zero_shot_transfer.summarise(self.task, metrics)

    def _stand_on(self, language):
        """Puts a language's adapter, if it has one, below what trained."""
        adapters = self.config.language_adapters
        if adapters:
            own = adapters.get(language, self.config.stack_on)
            composed_model.swap_adapters(self.model, own)

    def predict(self, rows):
        """Returns one dict for each row, see `decode` of the task's head."""
        examples = self.examples(rows, labelled=False)
        outputs = self.trainer.predict(examples, "predicting")
        return self.model.head.decode(outputs, examples.source)


def _check_languages(config, task):
    """Raises an error of a language that would be answered on another's."""
    names = task.languages.names if task.languages else ()
    asked = config.data.eval_languages
    for language in set(config.language_adapters or ()) - set(asked):
        # A folder may be called `en_ewt`; YAML reads `no` as false.
        code = str(language).partition("_")[0]
        check_known("language of `language_adapters`", code, names, ConfigError)


def head_settings(config, task):
    """Returns the fields of a task's head that a configuration says."""
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
    # What the head is called with for a task comes before what it has anyway.
    own = {key: value for key, value in known.items() if key in names}
    # Pretraining's head is not that of the task it is for.
    return own | ({} if task.kind.label == "none" else config.head or {})


def _make_deterministic(config):
    # On CPUs equal runs are equal as it is, and this takes a tenth longer.
    gpus = tf.config.list_physical_devices("GPU")
    if config.train.deterministic and gpus:
        tf.config.experimental.enable_op_determinism()
