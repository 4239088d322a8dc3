"""A training run, from a configuration to its result."""

import dataclasses
import time

import keras
import tensorflow as tf

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.data.batches import pipeline
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders.load import load_encoder
from tf_adapters.methods.composition import Stack
from tf_adapters.models import composed_model
from tf_adapters.models import fusion_model
from tf_adapters.models import saving
from tf_adapters.models import stored_adapter
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.models.variable_groups import trained_table
from tf_adapters.runs import compatibility
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import pretraining_task
from tf_adapters.runs import run_folder_of_workers
from tf_adapters.runs.provenance import provenance
from tf_adapters.runs.recovery import Recovery
from tf_adapters.runs.run_folder import frozen_weights
from tf_adapters.training import distribution
from tf_adapters.training import workers
from tf_adapters.training.loop import Loop
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
        self.strategy = distribution.strategy_for_config(config)
        if sibling is None:
            keras.utils.set_random_seed(config.seed)
            _make_deterministic(config)
            self._load_encoder()
        else:
            self.encoder = sibling.encoder
            self.tokenizer, self.packer = sibling.tokenizer, sibling.packer
        with self.strategy.scope():
            self.model = self._make_model(adapter, train_rows)
        self.trainer = Trainer(
            self.model, self.strategy, config, task.metrics, self._trained()
        )

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

    def _make_model(self, adapter, train_rows):
        options = {"use_encoder_dropout": self.config.train.encoder_dropout}
        if adapter is not None:
            members = self.config.method.adapters or None
            # A run that moved knows by itself where what it stood on is now.
            below = self.config.stack_on
            is_there = below and stored_adapter.find_stored(below).is_dir()
            model = saving.load_adapter(
                adapter,
                self.encoder,
                members,
                below=below if is_there else None,
                **options,
            )
            compatibility.check_labels(model.head, self.task, adapter)
            # What the run's own configuration leaves out has no slots anyway.
            model.leave_out(self.config.method.leave_out)
            return model
        method = self.config.method
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
            values, compared = self.trainer.judge(self.examples(rows))
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
        outputs = self.trainer.predict(examples)
        return self.model.head.decode(outputs, examples.source)


def head_settings(config, task):
    """Returns the fields of a task's head that a configuration says."""
    known = {
        "stride": config.data.doc_stride,
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


def train_experiment(
    config,
    task,
    rows,
    model_dir,
    test=True,
    overwrite=False,
    prepare=None,
    declared=None,
):
    """Trains, writes the run folder, and returns `(experiment, result)`.

    Goes on where an earlier process of the same run was stopped.

    Args:
        config: `Config`.
        task: `Task`, see `splits.get_task`.
        rows: Dict from split to rows, see `splits.load_rows`.
        model_dir: Folder of the run.
        test: Whether to evaluate on the test split too, where it is labelled,
            and on the task's further validation splits.
        overwrite: Whether to remove a run that lies in `model_dir` first.
        prepare: Function of the model, called before it trains, or `None`
            (default). With it, the result has `before`: the metrics on
            validation at that time.
        declared: See `RunFolder`.

    Raises:
        Stopped: If the process was told to stop, or another worker is gone.
    """
    with workers.losses_as_stops(distribution.strategy_for_config(config)):
        started = time.perf_counter()
        # First, so that missing data are missed before the training.
        languages = (
            zero_shot_transfer.load_languages(task, config.data) if test else {}
        )
        fingerprint = sampling.fingerprints(rows)
        # What is wrong with a run is to show before it removes an earlier one.
        experiment = Experiment(config, task, train_rows=rows["train"])
        run = run_folder_of_workers.open_run(
            experiment.strategy,
            model_dir,
            config,
            fingerprint,
            overwrite,
            declared,
            frozen_weights(experiment.model),
        )
        print_weights(experiment.model, run)
        examples = experiment.examples_by_split(rows)
        print_sizes(examples)
        before = _prepare(experiment, prepare, examples["validation"])
        outcome, compared = _fit(experiment, run, examples)
        run.save_predictions("validation", experiment.model.head, compared)
        result = {
            **_result(experiment, outcome, fingerprint),
            **before,
            **_of_pretraining(config.init_adapter),
        }
        if test:
            result |= evaluate_held_out(experiment.trainer, examples, run)
        if languages:
            result["transfer"] = experiment.transfer(languages, run)
        result["seconds"] = round(time.perf_counter() - started, 1)
        run.save_result(result)
        # Before that, no worker may read what the chief writes, nor end.
        workers.wait_for_all(experiment.strategy)
        return experiment, result


def _prepare(experiment, prepare, validation):
    """Returns the metrics before the training, if that has to be prepared."""
    if prepare is None:
        return {}
    prepare(experiment.model)
    return {"before": experiment.trainer.evaluate(validation)}


def _fit(experiment, run, examples):
    """Trains; returns the summary of `Loop.run`, and the predictions."""
    config = experiment.config
    details = {
        "task": experiment.task.name,
        "max_length": config.data.max_length,
    }

    def save_best(values):
        run.save_adapter(experiment.model, {**details, "validation": values})

    recovery = Recovery(
        run, config.train.checkpoint_seconds, experiment.strategy
    )
    loop = Loop(
        experiment.trainer,
        examples["train"],
        examples["validation"],
        run.log,
        save_best,
        recovery,
        lambda step: run.save_snapshot(experiment.model, step, details),
    )
    with recovery.listening():
        return loop.run(), loop.predictions


def evaluate_held_out(trainer, examples, run):
    """Returns the metrics of the splits that chose nothing, by split.

    Args:
        trainer: `Trainer`.
        examples: Dict from split to `Examples`.
        run: `RunFolder`, which gets the predictions.
    """
    metrics = {}
    for split in examples:
        if split not in ("train", "validation"):
            metrics[split], compared = trainer.judge(examples[split])
            run.save_predictions(split, trainer.model.head, compared)
    return metrics


def print_weights(model, run):
    """Prints which weights train; the run folder has the table too."""
    table = trained_table(model)
    run.save_text("trained_weights.txt", table)
    print(table, flush=True)


def print_sizes(examples):
    """Prints how many examples there are, by name, and how long they are."""
    for split, tokenized in examples.items():
        lengths = tokenized.lengths
        print(
            f"{split}: {len(tokenized):,} examples, {lengths.mean():.0f} "
            f"tokens on average, {lengths.max()} at most",
            flush=True,
        )


def _result(experiment, outcome, data_fingerprint):
    model = experiment.model
    report = model.method.report(model)
    seconds = outcome.pop("seconds")
    return {
        **facts(experiment.config, model),
        **outcome,
        **({"method_report": report} if report else {}),
        "training_seconds": seconds,
        "data_fingerprint": data_fingerprint,
    }


def _of_pretraining(folder):
    """Returns how the loss of masked tokens changed in the run before this."""
    result = earlier_runs.read_result(folder) if folder else None
    if result is None or "before" not in result:
        return {}
    before, after = result["before"], result["validation"]
    losses = {
        "masked_lm_loss_before": -before["log_likelihood"],
        "masked_lm_loss_after": -after["log_likelihood"],
    }
    return {"pretraining": losses}


def facts(config, model):
    """Returns what a run's result says of its configuration and model."""
    trained = model.trained_variables()
    of_head = [v for n, v in trained.items() if n.startswith("head/")]
    return {
        "task": config.task,
        "encoder": config.encoder,
        "method": methods.to_config(config.method)["name"],
        "seed": config.seed,
        "trained_weights": count_weights(trained.values()),
        "head_weights": count_weights(of_head),
        "encoder_weights": model.encoder.backbone.count_params(),
        **provenance(),
    }
