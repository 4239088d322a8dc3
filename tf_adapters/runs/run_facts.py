"""What runs of every kind say of themselves, as text and in their results."""

import logging

from tf_adapters import methods
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.models.variable_groups import trained_table
from tf_adapters.runs.provenance import provenance

_LOGGER = logging.getLogger(__name__)


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


def print_weights(model, run):
    """Prints which weights train; the run folder has the table too."""
    table = trained_table(model)
    run.save_text("trained_weights.txt", table)
    print(table, flush=True)


def print_sizes(examples, batch_size):
    """Prints how many examples there are, by name, and how long they are.

    Warns if a batch holds all training examples.

    Args:
        examples: Dict from a name that ends in the split's to `Examples`.
        batch_size: Examples in a training step.
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
