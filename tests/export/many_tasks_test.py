"""Tests that one SavedModel answers like the models of its tasks."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.export.conftest import SENTENCES
from tests.export.conftest import TEMPERATURES
from tests.export.conftest import make_run
import tf_adapters
from tf_adapters.common.errors import AdapterError
from tf_adapters.config import resolve
from tf_adapters.export import many_tasks
from tf_adapters.export import many_tasks_module
from tf_adapters.tasks import TASKS

pytestmark = pytest.mark.integration

# One text, two texts, a number, three classes; the methods differ.
RUNS = {
    "sst2": tf_adapters.methods.Houlsby(units=4),
    "mrpc": tf_adapters.methods.LoRA(rank=3),
    "stsb": tf_adapters.methods.BitFit(),
    "sick": tf_adapters.methods.PrefixTuning(prefix_length=5, hidden_units=0),
}
LONG = "the bad film and the good plot " * 20


def _make(folder, task, method):
    model, packer, config = make_run(folder, task, method)
    resolve.save_config(config, folder / "config.yaml")
    return model, packer


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        task: (folder / task, *_make(folder / task, task, method))
        for task, method in RUNS.items()
    }


@pytest.fixture(scope="module")
def exported(runs, tmp_path_factory):
    folders = [folder for folder, *_ in runs.values()]
    return many_tasks.export_runs(folders, tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def serve(exported):
    loaded = tf.saved_model.load(str(exported))
    signature = loaded.signatures["serving_default"]

    def call(texts, pairs, tasks):
        return {
            key: value.numpy()
            for key, value in signature(
                text=tf.constant(texts),
                text_pair=tf.constant(pairs),
                task=tf.constant(tasks),
            ).items()
        }

    call.keep = loaded
    return call


TEXTS = [*SENTENCES, LONG] * 4
PAIRS = TEXTS[::-1]
NAMES = [name for name in RUNS for _ in range(len(SENTENCES) + 1)]


def _order():
    return np.random.default_rng(0).permutation(len(TEXTS))


@pytest.fixture(scope="module")
def answers(serve):
    """Answers all rows in one batch of mixed tasks, in their order."""
    order = _order()
    columns = [[column[i] for i in order] for column in (TEXTS, PAIRS, NAMES)]
    mixed = serve(*columns)
    return {key: value[np.argsort(order)] for key, value in mixed.items()}


@pytest.mark.parametrize("name", RUNS)
def test_a_mixed_batch_is_each_model_alone(name, runs, answers):
    _, model, packer = runs[name]
    rows = [i for i, other in enumerate(NAMES) if other == name]
    texts = [TEXTS[i] for i in rows]
    pairs = [PAIRS[i] for i in rows]
    pair = len(TASKS[name].text_fields) > 1
    features = packer(texts, pairs) if pair else packer(texts)
    outputs = model(features, training=False).numpy()
    assert np.ptp(outputs, axis=0).max() > 1e-2
    answers = {key: value[rows] for key, value in answers.items()}
    assert not answers["status"].astype(bool).any()
    if TASKS[name].head == "regression":
        np.testing.assert_allclose(answers["score"], outputs[:, 0], atol=1e-5)
        assert not answers["probabilities"].any()
        assert (answers["label_id"] == -1).all()
        return
    labels = TASKS[name].labels
    scaled = outputs / TEMPERATURES.get(name, 1.0)
    exponentials = np.exp(scaled - scaled.max(1, keepdims=True))
    expected = exponentials / exponentials.sum(1, keepdims=True)
    found = answers["probabilities"]
    np.testing.assert_allclose(found[:, : len(labels)], expected, atol=1e-5)
    assert not found[:, len(labels) :].any()
    assert (answers["num_labels"] == len(labels)).all()
    ids = outputs.argmax(1)
    assert answers["label_id"].tolist() == ids.tolist()
    assert [x.decode() for x in answers["label"]] == [labels[i] for i in ids]
    assert [x.decode() for x in answers["labels"][0]][: len(labels)] == list(
        labels
    )


def test_an_unknown_task_spoils_its_own_row_only(serve):
    tasks = ["sst2", "sst3", "sst2", ""]
    texts = ["the film is good"] * 4
    mixed = serve(texts, [""] * 4, tasks)
    assert [x.decode() for x in mixed["status"]] == [
        "",
        "unknown task `sst3`",
        "",
        "unknown task ``",
    ]
    for key, value in serve(texts[:1], [""], tasks[:1]).items():
        if value.dtype.kind == "f":
            np.testing.assert_allclose(mixed[key][0], value[0], atol=1e-5)
        else:
            assert np.all(mixed[key][0] == value[0])
    assert mixed["probabilities"][1].sum() == 0
    assert mixed["label"][1] == b"" and mixed["label_id"][1] == -1


@pytest.mark.parametrize("counts", [(2, 2, 1), (2, 1, 2), (1, 2, 2), (2, 3, 3)])
def test_texts_pairs_and_tasks_are_as_many(serve, counts):
    columns = (["a film"], ["a plot"], ["mrpc"])
    columns = [x * count for x, count in zip(columns, counts, strict=True)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="number of rows"):
        serve(*columns)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (tf_adapters.heads.Classification(labels=("a", "b")), True),
        (tf_adapters.heads.MultiLabel(labels=("a", "b")), False),
        (tf_adapters.heads.Regression(), False),
    ],
)
def test_only_a_head_of_one_class_predicts_a_label(head, expected):
    assert many_tasks_module.chooses_a_class(head) == expected


def test_the_encoder_is_there_once(exported, runs):
    size = sum(p.stat().st_size for p in exported.rglob("*") if p.is_file())
    model = runs["mrpc"][1]
    encoder = 4 * model.encoder.backbone.count_params()
    folders = [folder for folder, *_ in runs.values()]
    adapters = tf_adapters.load_bank(folders, model.encoder_info).num_bytes()
    variables = (exported / "variables").glob("*data*")
    assert sum(p.stat().st_size for p in variables) < 1.5 * encoder + adapters
    assert size > encoder


def test_description_and_warm_up(exported):
    extra = exported / "assets.extra"
    description = json.loads((extra / "model.json").read_text())
    assert list(description["tasks"]) == list(RUNS)
    assert description["tasks"]["mrpc"]["text_fields"] == list(
        TASKS["mrpc"].text_fields
    )
    assert (extra / "tf_serving_warmup_requests").stat().st_size > 0
    assert (exported.parents[1] / "models.config").is_file()
    assert (exported.parents[1] / "batching_parameters.txt").is_file()


def test_what_does_not_fit_is_refused(runs, tmp_path):
    folder = runs["sst2"][0]
    with pytest.raises(AdapterError, match="Two of the adapters"):
        many_tasks.export_runs([folder, folder], tmp_path)
    config = resolve.load_config(runs["mrpc"][0] / "config.yaml")
    values = resolve.to_dict(config)
    values["data"]["max_length"] = 12
    other = tmp_path / "other"
    other.mkdir()
    resolve.save_config(resolve.resolve_config(values), other / "config.yaml")
    with pytest.raises(AdapterError, match="same `data.max_length`"):
        many_tasks.export_runs([folder, other], tmp_path)


def test_heads_of_tokens_and_changed_banks_are_refused(tmp_path):
    encoder = tiny.encoder()
    method = tf_adapters.methods.HeadOnly()
    head = tf_adapters.heads.Tagging(("a", "b"))
    tags = tf_adapters.adapt(encoder, method, head)
    bank = tf_adapters.load_bank([tags], encoder)
    with pytest.raises(AdapterError, match="only with classes and numbers"):
        many_tasks.export_bank(bank, None, [], tmp_path)
    head = tf_adapters.heads.Regression()
    one = tf_adapters.adapt(encoder, method, head, name="one")
    two = tf_adapters.adapt(encoder, method, head, name="two")
    bank = tf_adapters.load_bank([one, two], encoder)
    bank.remove("one")
    with pytest.raises(AdapterError, match="removed or replaced"):
        many_tasks.export_bank(bank, None, [], tmp_path)
