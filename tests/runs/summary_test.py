"""Tests the printed summary of a result."""

from tf_adapters.config import resolve
from tf_adapters.runs import summary

RESULT = {
    "validation": {"accuracy": 0.5},
    "encoder_weights": 1_000_000,
    "examples_per_second": 10.0,
    "padding_share": 0.1,
    "seconds": 3.0,
}


def test_the_size_of_an_adapter_where_it_is(tmp_path, capsys):
    """A worker that is not the chief has none in its own folder."""
    config = resolve.resolve_config(
        {"task": "demo_sentiment", "method": "houlsby"}
    )
    summary.print_run(RESULT, config, tmp_path)
    assert "adapter:" not in capsys.readouterr().out
    (tmp_path / "adapter").mkdir()
    weights = tmp_path / "adapter" / "adapter.safetensors"
    weights.write_bytes(bytes(2_500_000))
    summary.print_run(RESULT, config, tmp_path)
    out = capsys.readouterr().out
    assert "(2.5 MB next to an encoder of 4 MB)" in out and "10 examples" in out


def test_steps_that_float16_skipped_are_said(tmp_path, capsys):
    config = resolve.resolve_config(
        {"task": "demo_sentiment", "method": "houlsby"}
    )
    for skipped in (0, 7):
        half = {**RESULT, "steps": 60, "skipped_steps": skipped}
        summary.print_run(half, config, tmp_path)
        said = "7 of 60 steps were skipped" in capsys.readouterr().out
        assert said == bool(skipped)
