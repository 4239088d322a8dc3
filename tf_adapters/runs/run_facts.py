"""Facts that every kind of run prints, or stores in its result."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from typing import Any

import keras

from tf_adapters import methods
from tf_adapters.encoders import quantization
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.models.variable_groups import trained_table
from tf_adapters.runs import earlier_runs
from tf_adapters.runs.provenance import provenance

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.runs.run_folder import RunFolder


_LOGGER = logging.getLogger(__name__)


def facts(config: Config, model: Any) -> dict[str, Any]:
    """Returns the `result.json` entries about a run's settings and model.

    Args:
        config: `Config`.
        model: `AdapterModel` or `MultiTaskModel`.

    Returns:
        Dict with the task, encoder, method and seed, numbers of weights, and
        the entries that `provenance` returns.
    """
    trained = model.trained_variables()
    of_head = [v for n, v in trained.items() if n.startswith("head/")]
    return {
        "task": config.task,
        "encoder": config.encoder,
        "method": methods.to_config(config.method)["name"],
        "seed": config.seed,
        "trained_weights": count_weights(trained.values()),
        "head_weights": count_weights(of_head),
        "encoder_weights": quantization.count_weights(model.encoder.backbone),
        "encoder_bytes": quantization.count_bytes(model.encoder.backbone),
        **provenance(),
    }


def of_pretraining(folder: Any) -> dict[Any, Any]:
    """Returns a dict with the entry `pretraining` of `result.json`.

    The entry has the loss of masked tokens before and after pretraining, and
    the duration of the pretraining. The run's own duration does not include it.
    The dict is empty if `folder` is `None` or holds no pretraining run.
    """
    result = earlier_runs.read_result(folder) if folder else None
    if result is None or "before" not in result:
        return {}
    before, after = result["before"], result["validation"]
    pretraining = {
        "masked_lm_loss_before": -before["log_likelihood"],
        "masked_lm_loss_after": -after["log_likelihood"],
        "pretraining_seconds": result["seconds"],
    }
    return {"pretraining": pretraining}


def print_weights(model: Any, run: RunFolder) -> None:
    """Prints a table of the trained weights and saves it in the run folder."""
    table = trained_table(model)
    run.save_text("trained_weights.txt", table)
    print(table, flush=True)


def print_sizes(examples: dict[str, Any], batch_size: int) -> None:
    """Prints the number and the lengths of each split's examples.

    Logs a warning if one batch holds all training examples.

    Args:
        examples: Dict from a name, such as `"train"` or `"rte train"`, to the
            `Examples` of a split. The name ends in the name of the split.
        batch_size: Number of examples per training step.
    """
    for name, tokenized in examples.items():
        lengths, counts = tokenized.lengths, tokenized.num_choices
        each = ""
        if counts.max() > 1:
            each = f"; {counts.mean():.1f} inputs each, {counts.max()} at most"
        print(
            f"{name}: {len(tokenized):,} examples, {lengths.mean():.0f} "
            f"tokens on average, {lengths.max()} at most{each}",
            flush=True,
        )
        if name.endswith("train") and len(tokenized) < batch_size:
            _LOGGER.warning(
                "%s: a batch of %s holds all %s examples, so that each epoch "
                "is a single step. Lower the batch size for more steps.",
                *(name, f"{batch_size:,}", f"{len(tokenized):,}"),
            )


def print_compilation(lengths: tuple[int, ...]) -> None:
    """Prints how many programs XLA can compile for training, if it does.

    Args:
        lengths: Lengths of the batches that XLA compiles. Empty if it is off.
    """
    if not lengths:
        return
    hint = ""
    if keras.backend.backend() == "tensorflow":
        hint = " --params_override=train.jit_compile=false turns XLA off."
    print(
        f"XLA compiles the training step once for each length that occurs: "
        f"{', '.join(map(str, lengths))} tokens. The first step of a length "
        f"takes longer.{hint}",
        flush=True,
    )
