"""Tests training and evaluation with steps that XLA compiles."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods import cases
from tests.runs import toy_runs
from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.data.batches import batch_plan
from tf_adapters.training import device_errors
from tf_adapters.training import distribution
from tf_adapters.training.compilation import Compiler

# The toy texts have up to nine tokens.
LENGTHS = (8, 12)


def _trained(compiled, method=None, data=None, strategy="one_device", **train):
    """Trains a toy model; returns the trainer, its outcome and its log."""
    config = toy_runs.config(jit_compile=compiled, learning_rate=1e-3, **train)
    settings = data or {"batching": "fixed", "length_buckets": LENGTHS[:1]}
    settings = dataclasses.replace(config.data, max_length=12, **settings)
    config = dataclasses.replace(config, data=settings)
    trainer = toy_runs.trainer(config, strategy, method=method)
    # Small gradients would be mostly noise, which Adam makes large.
    tiny.randomize(trainer.variables)
    outcome, records, _ = toy_runs.fit(trainer)
    return trainer, outcome, records


def _check_equal(compiled, plain):
    """Compares a compiled run with a plain one."""
    (trainer, outcome, records), (other, expected, plain_records) = (
        compiled,
        plain,
    )
    assert outcome["validation"] == expected["validation"]
    np.testing.assert_allclose(
        toy_runs.losses(records), toy_runs.losses(plain_records), atol=2e-5
    )
    for name, variable, wanted in zip(
        trainer.names, trainer.variables, other.variables, strict=True
    ):
        # The loss does not depend on the keys' bias: its gradient is noise.
        if "key/bias" not in variable.path.replace("--", "/"):
            np.testing.assert_allclose(
                variable.numpy(), wanted.numpy(), atol=2e-5, err_msg=name
            )


def test_a_compiled_run_is_the_plain_run():
    """In both, one program for each length, and one for each other part."""
    compiled, plain = _trained(True, epochs=1), _trained(False, epochs=1)
    _check_equal(compiled, plain)
    trainer, outcome, records = compiled
    by_part = [name for name, *_ in trainer.compiler.programs]
    assert by_part.count("gradients ()") == len(LENGTHS)
    assert by_part.count("norms") == by_part.count("update ()") == 1
    # The validation is a single batch.
    assert len(by_part) == len(LENGTHS) + 3 == outcome["compiled_programs"]
    assert records[0]["compiled_programs"] == 3
    assert "compiled_programs" not in plain[1]


@pytest.mark.slow
def test_two_replicas():
    mirrored = {"strategy": "mirrored", "epochs": 1}
    _check_equal(_trained(True, **mirrored), _trained(False, **mirrored))


@pytest.mark.slow
def test_blocks_whose_adapters_are_left_out():
    """Each number of such blocks is a program of its own."""
    options = {"method": methods.Houlsby(units=4), "adapter_drop": (0, 1)}
    compiled = _trained(True, **options)
    _check_equal(compiled, _trained(False, **options))
    names = {name for name, *_ in compiled[0].compiler.programs}
    assert {"update ()", "update (0,)"} < names


@pytest.mark.slow
def test_batches_of_any_length_get_a_few_lengths():
    """The batches of the plain run, padded."""
    grouped = {"batching": "grouped"}
    compiled = _trained(True, data=grouped)
    _check_equal(compiled, _trained(False, data=grouped))
    names = [name for name, *_ in compiled[0].compiler.programs]
    assert names.count("gradients ()") <= 2


# One of each kind of change to the encoder. Methods that draw random numbers
# draw others under XLA.
FAMILIES = (
    *("full", "top_layers", "layer_norm", "bitfit", "pfeiffer", "lora_all"),
    *("adapter_bias", "ia3_peft", "prefix_tuning_peft", "prompt_tuning"),
    *("compacter_plus_plus", "mam", "invertible", "fusion", "pals"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in FAMILIES if n in cases.EVERY])
def test_every_family_of_methods(name):
    _check_equal(
        *(_trained(c, cases.EVERY[name], epochs=1) for c in (True, False))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "train",
    [{"accumulation_steps": 2}, {"remat": True}, {"steps_per_loop": 2}],
    ids=["parts", "remat", "loops"],
)
def test_other_forms_of_a_step(train):
    _check_equal(*(_trained(c, epochs=1, **train) for c in (True, False)))


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision(precision):
    """XLA rounds at other places, so only losses are compared."""
    (_, outcome, records), (_, expected, plain) = (
        _trained(c, epochs=1, precision=precision) for c in (True, False)
    )
    losses = toy_runs.losses(plain)
    assert toy_runs.losses(records) == pytest.approx(losses, rel=0.05)
    assert outcome.get("skipped_steps") == expected.get("skipped_steps")


def test_few_lengths_are_quarters():
    assert batch_plan.few_lengths(128) == (32, 64, 96, 128)
    assert batch_plan.few_lengths(12) == (8, 12)
    batch = batch_plan.Batch(np.arange(3), 65)
    (padded,) = batch_plan.in_fixed_shapes([batch], 4, (32, 64, 96))
    assert (padded.length, padded.size) == (96, 4)
    (longer,) = batch_plan.in_fixed_shapes([batch], 4, (32,))
    assert longer.length == 65


def _compiler(setting):
    return Compiler(setting, distribution.make_strategy("one_device"))


def test_it_is_off_on_a_cpu_unless_asked_for():
    assert not _compiler(None).is_on
    assert _compiler(True).is_on


def test_a_shape_that_changes_is_refused_or_not_compiled():
    unknown = tf.TensorSpec([None, 3])
    function = tf.function(_compiler(True).compiled("f", tf.reduce_sum))
    with pytest.raises(ConfigError, match="data.batching=fixed"):
        function.get_concrete_function(unknown)
    compiler = _compiler(None)
    compiler.is_on = True
    function = tf.function(compiler.compiled("f", tf.reduce_sum))
    assert float(function.get_concrete_function(unknown)(np.ones((2, 3)))) == 6
    assert compiler.programs == set()


def _explained(function, compiles=True, **train):
    settings = toy_runs.config(**train).train
    advice = device_errors.memory_advice(settings)
    with (
        pytest.raises(ConfigError) as error,
        device_errors.explained(advice, settings.deterministic, compiles),
    ):
        function()
    return str(error.value)


def _in_python(values):
    return tf.numpy_function(np.sort, [values], tf.float32)


@pytest.mark.parametrize(
    ("function", "argument"),
    [(tf.strings.length, ["a", "bc"]), (_in_python, [2.0, 1.0])],
)
def test_operations_that_xla_lacks_are_explained(function, argument):
    compiled = _compiler(True).compiled("f", function)
    message = _explained(lambda: compiled(tf.constant(argument)))
    assert "XLA cannot compile a step of this model: Detected" in message
    assert "Set train.jit_compile=false" in message


def test_operations_without_a_deterministic_kernel_are_explained():
    def fail():
        raise tf.errors.UnimplementedError(
            *(None, None),
            "A deterministic GPU implementation of SegmentSum is not "
            "currently available.\n\t [[node]]",
        )

    message = _explained(fail, deterministic=True)
    assert "`train.deterministic` is true" in message
    assert "of SegmentSum is not currently available. Set" in message
    with (
        pytest.raises(tf.errors.UnimplementedError),
        device_errors.explained("", None, False),
    ):
        fail()


@pytest.mark.parametrize(
    "before",
    [
        "{{function_node __wrapped__Fill}} ",
        "Graph execution error:\n\nDetected at node Fill defined at (most "
        'recent call last):\n  File "memory.py", line 1, in call\n\n',
        "2 root error(s) found.\n",
    ],
)
def test_memory_that_runs_out_is_explained(before):
    """With messages of TensorFlow, which waits ten seconds before them."""

    def fail():
        raise tf.errors.ResourceExhaustedError(
            *(None, None),
            f"{before}OOM when allocating tensor with "
            "shape[9] and type float on CPU:0 [Op:Fill]\nHint: add options",
        )

    message = _explained(fail, compiles=False)
    assert message.startswith(
        "The memory of the device does not suffice: OOM when allocating tensor "
        "with shape[9] and type float on CPU:0 [Op:Fill]. Lower --batch_size "
        "(now 8; in evaluation, train.eval_batch_size, now 64), raise"
    )
    assert "train.remat=true" in message and "--precision" in message


def test_a_full_disk_is_not_taken_for_memory():
    """TensorFlow raises the same error for both."""
    message = "runs/log/events.1; No space left on device"
    with (
        pytest.raises(tf.errors.ResourceExhaustedError, match="No space"),
        device_errors.explained("", None, False),
    ):
        raise tf.errors.ResourceExhaustedError(None, None, message)


def test_memory_of_jax_that_runs_out_is_explained():
    def fail():
        raise RuntimeError(
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 "
            "bytes.\nBuffer assignment:"
        )

    message = _explained(fail, compiles=False)
    assert "trying to allocate 9 bytes. Lower --batch_size" in message


def test_an_error_of_the_user_is_not_one_of_the_compiler():
    message = "`deberta-v2-xlarge` no longer has its weights."
    with (
        pytest.raises(UserError, match=f"^{message}"),
        device_errors.explained("", None, True),
    ):
        raise UserError(message)
    with (
        pytest.raises(ValueError, match="^/models/bert-xlarge"),
        device_errors.explained("", None, True),
    ):
        raise ValueError("/models/bert-xlarge is no file.")
