"""Trains a tiny model on the backend and devices of this process.

Writes the losses, the metrics, the trained weights and the outputs to an `.npz`
file, to be compared with those of another backend.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from tests import tiny
from tests.methods import cases
from tests.runs import toy_runs
from tests.training import single_steps

# Settings of the cases: method, settings of training and of the data, strategy.
CASES = {
    "houlsby": ("houlsby", {}, {}),
    "full": ("full", {"accumulation_steps": 2}, {}),
    "lora": ("lora", {"clip_norm": None, "steps_per_loop": 2}, {}),
    "bias": ("adapter_bias", {"decay": "none"}, {}),
    "drop": ("pfeiffer", {"adapter_drop": (0, 1)}, {}),
    "fusion": ("fusion", {"validate_every_steps": 2}, {}),
    "fixed": (
        "pfeiffer",
        {},
        {"batching": "fixed", "length_buckets": [6], "max_length": 12},
    ),
    **{
        name: (name, {}, {})
        for name in (
            "top_layers",
            "bitfit",
            "compacter",
            "ia3",
            "mam",
            "unipelt",
        )
    },
    # At the rate of the others, Adam enlarges sums in another order to 6e-5.
    "projected": ("projected_attention", {"learning_rate": 1e-3}, {}),
    # Its three vectors take positions of the encoder's 32.
    "prompt": ("prompt_tuning_peft", {}, {"max_length": 29}),
}


def train(name, strategy):
    """Returns a dict of arrays: what the case's training came to."""
    method, settings, data = CASES[name]
    config = toy_runs.config(epochs=2, data=data, **settings)
    trainer = toy_runs.trainer(config, strategy, method=cases.EVERY[method])
    # Backends draw different initial weights.
    trained = dict(zip(trainer.names, trainer.variables, strict=True))
    tiny.randomize([v for n, v in trained.items() if "log_alpha" not in n], 0.1)
    outcome, records, _ = toy_runs.fit(trainer)
    outputs = trainer.predict(toy_runs.examples(seed=2))
    steps = [one for one in trainer.programs if one[0] == "training step"]
    return {
        "losses": np.array(toy_runs.losses(records)),
        "metric": np.array(outcome["validation"]["accuracy"]),
        "outputs": np.stack(outputs),
        "compilations": np.array(len(steps)),
        "replicas": np.array(trainer.strategy.num_replicas_in_sync),
    } | {
        f"weights/{n}": v
        for n, v in zip(trained, tiny.values(trainer.variables), strict=True)
    }


def train_head(kind, strategy):
    """Returns the losses and the weights of one epoch with a kind of output."""
    head, make_examples = single_steps.HEADS[kind]
    data = {"batching": "fixed", "max_length": single_steps.LENGTH}
    trainer = toy_runs.trainer(
        toy_runs.config(data=data, learning_rate=1e-3), strategy, head=head
    )
    tiny.randomize(trainer.variables, 0.1)
    trainer.prepare_training(4)
    examples = make_examples()
    batches = [b for epoch in (0, 1) for b in trainer.plan(examples, epoch)]
    results = trainer.train_loops(examples, [[batch] for batch in batches])
    losses = [np.asarray(loss) for loss, _ in results]
    return {"losses": np.concatenate(losses)} | {
        f"weights/{n}": v
        for n, v in zip(
            trainer.names, tiny.values(trainer.variables), strict=True
        )
    }


def train_case(name, strategy):
    """Returns what a case of `CASES` or a kind of output came to."""
    make = train if name in CASES else train_head
    return make(name, strategy)


def main():
    path, strategy, *names = sys.argv[1:]
    found = {name: train_case(name, strategy) for name in names}
    np.savez(
        path,
        **{
            f"{case}:{k}": v
            for case, one in found.items()
            for k, v in one.items()
        },
    )


if __name__ == "__main__":
    main()
