"""Tests that steps behind kept blocks are those of the whole model."""

import dataclasses
import errno
import os

import numpy as np
import pytest

from tests import tiny
from tests.runs import toy_runs
from tf_adapters import methods
from tf_adapters.data.batches import token_vectors
from tf_adapters.data.examples import Masking
from tf_adapters.models import frozen_blocks
from tf_adapters.runs import frozen_block_cache


def _trainer(mode="float32", strategy="one_device", method=None, **train):
    settings = {"epochs": 3, "encoder_dropout": False, **train}
    config = toy_runs.config(cache_frozen_blocks=mode, **settings)
    method = method or methods.TopLayers(k=1)
    return toy_runs.trainer(config, strategy, method=method, num_blocks=2)


def _fit(trainer, folder):
    kept = [
        frozen_block_cache.cached(
            trainer, examples, split, folder, len(examples)
        )
        for split, examples in (
            ("train", toy_runs.examples()),
            ("validation", toy_runs.examples(seed=1)),
        )
    ]
    outcome, records, _ = toy_runs.fit(trainer, *kept)
    weights = tiny.values(trainer.variables)
    return kept, outcome["validation"], toy_runs.losses(records), weights


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What three epochs give without a cache."""
    return _fit(_trainer("off"), tmp_path_factory.mktemp("whole"))


@pytest.mark.integration
@pytest.mark.parametrize(
    ("mode", "tolerance", "of_weights"),
    # Adam divides by small gradients, so roundings show in the weights.
    [("float32", 2e-6, 5e-4), ("bfloat16", 2e-2, 0.1)],
)
def test_training_is_that_of_the_whole_model(
    whole, mode, tolerance, of_weights, tmp_path
):
    kept, metrics, losses, weights = _fit(_trainer(mode), tmp_path)
    assert [one.token_vectors.name for one in kept] == ["hidden_state_1"] * 2
    assert metrics == whole[1]
    np.testing.assert_allclose(losses, whole[2], atol=tolerance)
    for actual, expected in zip(weights, whole[3], strict=True):
        np.testing.assert_allclose(actual, expected, atol=of_weights)


@pytest.mark.slow
def test_two_devices_read_the_same_vectors(whole, tmp_path):
    *_, losses, weights = _fit(_trainer(strategy="mirrored"), tmp_path)
    np.testing.assert_allclose(losses, whole[2], atol=2e-5)
    for actual, expected in zip(weights, whole[3], strict=True):
        np.testing.assert_allclose(actual, expected, atol=5e-4)


@pytest.mark.integration
def test_a_large_output_is_in_a_file_that_goes_with_the_process(
    monkeypatch, tmp_path, capsys
):
    trainer, examples = _trainer(), toy_runs.examples()
    arguments = (trainer, examples, "train", tmp_path, len(examples))
    in_memory = frozen_block_cache.cached(*arguments).token_vectors
    monkeypatch.setattr(frozen_block_cache, "IN_MEMORY", 0)
    in_file = frozen_block_cache.cached(*arguments).token_vectors
    assert f"MB in {tmp_path}" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    read = [one.read(np.array([3, 0]), 12) for one in (in_memory, in_file)]
    assert np.ptp(read[0]) > 1
    np.testing.assert_array_equal(*read)


def test_a_full_disk_turns_it_off_with_a_warning(monkeypatch, tmp_path):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(frozen_block_cache, "IN_MEMORY", 0)
    monkeypatch.setattr(os, "posix_fallocate", full)
    examples = toy_runs.examples()
    with pytest.warns(UserWarning, match="No space left.*are computed again"):
        kept = frozen_block_cache.cached(
            _trainer(), examples, "train", tmp_path, len(examples)
        )
    assert kept is examples


def test_a_file_is_reserved_on_systems_without_fallocate(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "posix_fallocate")
    with (tmp_path / "file").open("wb") as file:
        token_vectors._reserve(file, 2**20 + 3)
    assert (tmp_path / "file").stat().st_size == 2**20 + 3


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        ({}, {"mode": "off"}),
        ({}, {"epochs": 1}),
        ({}, {"max_steps": 2}),
        ({}, {"method": methods.Houlsby(units=4)}),
        (
            {
                "masking": Masking(
                    mask_id=4, special_ids=(0,), vocabulary_size=50
                )
            },
            {},
        ),
    ],
    ids=[
        *("off", "one epoch", "few steps"),
        *("trained embedding norm", "random tokens"),
    ],
)
def test_nothing_is_kept_in_vain(change, settings, tmp_path):
    examples = dataclasses.replace(toy_runs.examples(), **change)
    kept = frozen_block_cache.cached(
        _trainer(**settings), examples, "train", tmp_path, len(examples)
    )
    assert kept is examples


def test_one_validation_needs_no_cache(tmp_path):
    examples = toy_runs.examples()
    arguments = (examples, "validation", tmp_path, len(examples))
    kept = frozen_block_cache.cached(_trainer(max_steps=2), *arguments)
    assert kept is examples
    kept = frozen_block_cache.cached(_trainer(), *arguments)
    assert kept.token_vectors is not None


def test_frozen_blocks_end_at_the_first_that_trains_or_has_a_slot():
    counts = {}
    for name, method in {
        "head": methods.HeadOnly(),
        "top": methods.TopLayers(k=1),
        "left out": methods.Pfeiffer(units=4, leave_out=(0,)),
        "all": methods.Pfeiffer(units=4),
        "weights": methods.DiffPruning(),
        "embeddings": methods.PromptTuning(prompt_length=2),
    }.items():
        model = toy_runs.trainer(
            toy_runs.config(), method=method, num_blocks=2
        ).model
        counts[name] = frozen_blocks.num_frozen_blocks(
            model, model.trained_variables().values(), training=True
        )
    assert counts == {
        "head": 2,
        "top": 1,
        "left out": 1,
        "all": 0,
        "weights": 0,
        "embeddings": 0,
    }


def test_random_blocks_are_kept_for_validations_only():
    model = toy_runs.trainer(
        toy_runs.config(), dropout=0.1, method=methods.HeadOnly(), num_blocks=2
    ).model
    found = [
        frozen_blocks.num_frozen_blocks(model, (), training)
        for training in (True, False)
    ]
    assert found == [0, 2]
