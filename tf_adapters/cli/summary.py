"""What the command prints of a run's result."""

from tf_adapters.data.rows import splits
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.runs import remote_folder


def print_tasks(result, config, model_dir):
    """Prints the result of a run of several tasks."""
    for name, metrics in result["tasks"].items():
        for split, values in metrics.items():
            print(f"{name} {split}: {_metrics(values)}")
        adapter = remote_folder.address(model_dir / name / "adapter")
        print(f"{name} adapter: {adapter}")
    if config.method.train_encoder:
        print(f"encoder: {remote_folder.address(model_dir / 'encoder')}")
    _speed(result)


def print_run(result, config, model_dir):
    """Prints the result of a run of one task."""
    print_evaluation(
        {k: result[k] for k in splits.EVALUATED if k in result}, config
    )
    for key, value in result.get("method_report", {}).items():
        print(f"{key}: {value:.4g}")
    weights = model_dir / "adapter" / "adapter.safetensors"
    # Of workers without a common folder the chief alone has it.
    if weights.exists():
        print(
            f"adapter: {remote_folder.address(weights.parent)} "
            f"({weights.stat().st_size / 1e6:.1f} MB beside an encoder of "
            f"{4 * result['encoder_weights'] / 1e6:.0f} MB)"
        )
    _speed(result)
    if "transfer" in result:
        print_evaluation({"transfer": result["transfer"]}, config)


def print_merge(result, model_dir):
    """Prints the result of a merge of adapters."""
    print(f"validation: {_metrics(result['validation'])}")
    merged = result["merged"]
    if merged["weights"]:
        weights = (f"{weight:.4g}" for weight in merged["weights"])
        print(f"weights: {', '.join(weights)}")
    print(
        f"adapter: {remote_folder.address(model_dir / 'adapter')} "
        f"({merged['adapter_weights']:,} weights, merged in "
        f"{result['merging_seconds']:.1f} s)"
    )


def print_search(result, config, model_dir):
    """Prints the result of the baseline without an encoder."""
    shown = {k: result[k] for k in splits.EVALUATED if k in result}
    print_evaluation(shown, config)
    settings = ", ".join(f"{k} {v}" for k, v in result["settings"].items())
    print(
        f"best of {result['trials']} networks, with "
        f"{result['trained_weights']:,} weights: {settings}"
    )
    print(f"network: {remote_folder.address(model_dir / 'model.keras')}")


def _speed(result):
    print(
        f"{result['examples_per_second']:.0f} examples a second, "
        f"{result['padding_share']:.0%} of positions were padding, "
        f"{result['seconds']:.0f} s in all"
    )
    if result.get("skipped_steps"):
        print(
            f"{result['skipped_steps']} of {result['steps']} steps were "
            "skipped: their float16 gradients overflowed"
        )


def _metrics(values):
    return ", ".join(f"{name} {value:.4f}" for name, value in values.items())


def print_evaluation(values, config):
    """Prints metrics by split, and under `transfer` those by language."""
    for split, metrics in values.items():
        if split == "transfer":
            print(
                zero_shot_transfer.transfer_table(
                    splits.declared_task(config), metrics
                )
            )
            if config.encoder == "minilm":
                print(
                    "MiniLM was trained on English alone: in other languages "
                    "its numbers check the program, and are no transfer."
                )
        else:
            print(f"{split}: {_metrics(metrics)}")
