"""The training loop of the PyTorch side, whatever is trained."""

import argparse
import json
import time

import adapters
import numpy as np
import peer_data
import peer_model
import torch
import transformers

WARMUP_SHARE = 0.1
EVALUATION_BATCH_SIZE = 64


def make_parser(description):
    """Returns a parser with the flags that say how to train."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--encoder", required=True, help="Hugging Face folder")
    parser.add_argument("--output", required=True, help="JSON file to write")
    parser.add_argument("--method", choices=peer_model.METHODS, required=True)
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument(
        "--activation",
        default="swish",
        choices=("swish", "relu", "gelu", "gelu_new"),
    )
    parser.add_argument("--train_layer_norms", action="store_true")
    parser.add_argument("--group_by_length", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--learning_rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    return parser


def fit(arguments, model, lengths, loss_of, evaluate):
    """Trains for all epochs and returns what each of them gave.

    Args:
        arguments: See `make_parser`.
        model: Module; what requires gradients is trained.
        lengths: Tokens of each training example.
        loss_of: Function from a batch's indices to its loss.
        evaluate: Function of no arguments that returns a dict, called after
            each epoch with dropout off.
    """
    steps = arguments.epochs * len(_batches(arguments, lengths, 0))
    optimizer = peer_model.make_optimizer(model, arguments.learning_rate)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, int(WARMUP_SHARE * steps), steps
    )
    history = []
    for epoch in range(arguments.epochs):
        losses = map(loss_of, _batches(arguments, lengths, epoch))
        loss, seconds = _train(model, optimizer, schedule, losses)
        model.eval()
        with torch.inference_mode():
            values = evaluate()
        history.append(
            {"epoch": epoch + 1, "loss": loss, "seconds": seconds, **values}
        )
        print(json.dumps(history[-1]), flush=True)
    return history


def _batches(arguments, lengths, epoch):
    """Returns one epoch's batches, a function of seed and epoch alone."""
    rng = np.random.default_rng((arguments.seed, epoch))
    if arguments.group_by_length:
        plan = peer_data.grouped_batches
    else:
        plan = peer_data.random_batches
    return plan(lengths, arguments.batch_size, rng)


def _train(model, optimizer, schedule, losses):
    """Takes a step down each loss; returns their mean, and the seconds."""
    model.train()
    values = []
    start = time.perf_counter()
    for loss in losses:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        peer_model.clip_gradients(model)
        optimizer.step()
        schedule.step()
        values.append(loss.item())
        if not np.isfinite(values[-1]):
            raise ValueError(f"Loss {values[-1]} at step {len(values)}.")
    return float(np.mean(values)), time.perf_counter() - start


def write_report(arguments, model, history, num_train, **results):
    """Writes what was found; seconds are those of training."""
    seconds = sum(entry["seconds"] for entry in history)
    report = {
        **results,
        "epochs": history,
        "seconds": seconds,
        "examples_per_second": arguments.epochs * num_train / seconds,
        "trained_weights": peer_model.trained_weights(model),
        "arguments": vars(arguments),
        "versions": {
            "adapters": adapters.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
