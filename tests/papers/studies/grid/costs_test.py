"""Compares the estimated costs of studies with computed and measured ones."""

import json

import pytest

from tests.fixtures import studies
from tf_adapters.config import resolve
from tf_adapters.papers.studies.grid import costs
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import known_sizes
from tf_adapters.papers.studies.grid import plan as study_plan

# Six blocks of 4 x 384 x 384 + 2 x 384 x 1536 weights.
MINILM = 10_616_832


def _config(method="houlsby", **settings):
    task = settings.pop("task", "sst2")
    layer = {"task": task, "method": method, "train": {"epochs": 2}}
    layer["train"]["batch_size"] = 16
    layer["data"] = {"max_train_examples": 1000}
    return resolve.resolve_config(layer, settings)


def _operations(*args, **settings):
    return costs.operations_of(_config(*args, **settings))


def test_operations_are_those_computed_by_hand():
    assert known_sizes.encoder_size("minilm").weights == MINILM
    training, evaluation = _operations()
    # 126 steps of 16 texts of 13.1 tokens; twice 872 texts.
    assert training == pytest.approx(4 * MINILM * 126 * 16 * 13.1)
    assert training == pytest.approx(1.121545e12, rel=1e-5)
    assert evaluation == pytest.approx(2 * MINILM * 2 * 872 * 13.1)


@pytest.mark.parametrize(
    ("method", "factor"),
    [
        ("full", 6),
        ("houlsby", 4),
        ("bitfit", 4),
        ("head_only", 2),
        ({"name": "top_layers", "k": 3}, 4),
        ({"name": "top_layers", "k": 9}, 6),
    ],
)
def test_what_trains_decides_what_training_takes(method, factor):
    training, evaluation = _operations(method)
    houlsby, same = _operations("houlsby")
    assert training / houlsby == pytest.approx(factor / 4)
    assert evaluation == same


def test_a_task_has_a_number_of_its_own():
    data = {"train_examples_of": {"sst2": 500, "rte": 9}}
    training, _ = _operations(data=data)
    assert training == pytest.approx(4 * MINILM * 2 * 32 * 16 * 13.1)


def test_low_resource_draws_validation_and_tests_on_the_original():
    data = {"low_resource": 500, "max_train_examples": None}
    training, evaluation = _operations(task="cola", data=data)
    # 32 steps an epoch.
    assert training == pytest.approx(4 * MINILM * 2 * 32 * 16 * 11.1)
    assert evaluation == pytest.approx(2 * MINILM * (2 * 1000 + 1043) * 11.1)


def test_steps_pretraining_and_validations_by_step_count():
    train = {"max_steps": 100, "validate_every_steps": 20}
    pretrain = {"steps": 50, "batch_size": 32}
    training, evaluation = _operations(train=train, pretrain=pretrain)
    assert training == pytest.approx(4 * MINILM * (1600 + 1600) * 13.1)
    assert evaluation == pytest.approx(2 * MINILM * 5 * 872 * 13.1)


def test_texts_are_cut_and_choices_are_texts():
    short, _ = _operations(task="hyperpartisan", data={"max_length": 64})
    # 515 examples are 33 steps.
    assert short == pytest.approx(4 * MINILM * 2 * 33 * 16 * 64)
    choices, _ = _operations(task="cosmosqa")
    assert choices == pytest.approx(4 * MINILM * 126 * 16 * 4 * 103.8)


def test_each_language_is_evaluated():
    _, one = _operations(task="xnli")
    _, three = _operations(
        task="xnli", data={"eval_languages": ["en", "de", "tr"]}
    )
    tokens = 2 * 5010 * 34.7
    assert three - one == pytest.approx(2 * MINILM * tokens)
    data = {"max_test_examples": 1000}
    _, less = _operations(task="xnli", data=data)
    assert one - less == pytest.approx(2 * MINILM * 4010 * 34.7)


def test_tasks_that_train_together_are_added():
    method = {"name": "multitask", "tasks": ["sst2", "cola"]}
    layer = {"train": {"epochs": 1, "batch_size": 10}}
    data = {"data": {"max_train_examples": 100}}
    config = resolve.resolve_config({"method": method}, layer, data)
    training, _ = costs.operations_of(config)
    tokens = 100 * 13.1 + 100 * 11.1
    assert training == pytest.approx(6 * MINILM * tokens)


def test_seconds_of_a_study(tmp_path):
    _, runs = studies.plan(tmp_path, small=None)
    cost = costs.cost_of(runs)
    operations = [costs.operations_of(run.config) for run in runs]
    assert cost.runs == len(operations) == 12 and cost.unknown == ()
    seconds = 12 * 40 + sum(t / 62e9 + e / 103e9 for t, e in operations)
    assert cost.two_core_seconds == pytest.approx(seconds)
    assert cost.accelerator_seconds == pytest.approx(
        sum(map(sum, operations)) / 124.8e12
    )


def test_unknown_sizes_are_named_and_left_out(tmp_path):
    base = {"encoder": "somewhere/unknown"}
    _, runs = studies.plan(tmp_path, base=base, small=None)
    cost = costs.cost_of(runs)
    assert cost.unknown == ("somewhere/unknown",)
    assert cost.two_core_seconds == cost.accelerator_seconds == 0
    grid = {"task": ["newsgroups", "sst2"], "method": ["houlsby"]}
    _, (unknown, known) = studies.plan(
        tmp_path, grid=grid, where=None, small=None
    )
    cost = costs.cost_of([unknown, known])
    assert cost.unknown == ("newsgroups",)
    assert cost == costs.Cost(
        2, *list(vars(costs.cost_of([known])).values())[1:3], ("newsgroups",)
    )


def test_members_of_fusions_train_once(tmp_path):
    members = {"tasks": ["rte", "mrpc"], "settings": {"method": "pfeiffer"}}
    set_members = {f"members.{key}": value for key, value in members.items()}
    where = [{"when": {"method": "fusion"}, "set": set_members}]
    grid = [
        {"task": ["rte"], "method": ["pfeiffer"]},
        {"task": ["rte", "mrpc"], "method": ["fusion"]},
    ]
    _, runs = studies.plan(
        tmp_path, grid=grid, where=where, small=None, base={"encoder": "minilm"}
    )
    whole = costs.cost_of(runs)
    # RTE's member is the study's run; MRPC's is one more.
    _, (_, mrpc) = studies.plan(
        tmp_path,
        grid={"task": ["rte", "mrpc"], "method": ["pfeiffer"]},
        where=None,
        small=None,
        base={"encoder": "minilm"},
    )
    alone = sum(costs.cost_of([run]).two_core_seconds for run in runs)
    # Each fusion alone trains both members; of the whole study MRPC's is left.
    members = costs.cost_of([runs[0], mrpc]).two_core_seconds
    mrpc = costs.cost_of([mrpc]).two_core_seconds
    assert whole.runs == 3
    assert whole.two_core_seconds == pytest.approx(alone - 2 * members + mrpc)


def test_encoders_are_known_by_preset_and_by_folder(tmp_path):
    assert known_sizes.encoder_size("bert_base_en_uncased").weights == (
        12 * 12 * 768 * 768
    )
    assert known_sizes.encoder_size("/x/multilingual-e5-small").blocks == 12
    config = {"num_hidden_layers": 3, "hidden_size": 8}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**config, "intermediate_size": 16}))
    size = known_sizes.encoder_size(str(tmp_path))
    assert size == known_sizes.EncoderSize(3, 8, 16)
    path.write_text(json.dumps(config))
    assert known_sizes.encoder_size(str(tmp_path)) is None


# Studies of docs/results.md, and their minutes there.
LOW_RESOURCE = {
    "base": {
        "encoder": "minilm",
        "data.low_resource": 1000,
        "train.epochs": 5,
        "train.batch_size": 16,
    },
    "grid": {
        "task": ["cola", "sst2", "stsb"],
        "method": ["full", "houlsby_he2021"],
        "seed": [0, 1],
    },
    "where": None,
}


def test_estimates_are_near_what_was_measured(tmp_path):
    _, runs = studies.plan(tmp_path, **LOW_RESOURCE)
    minutes = costs.cost_of(runs).two_core_seconds / 60
    print(f"low_resource_glue --small: {minutes:.0f} for 26")
    assert 26 / 1.5 < minutes < 26 * 1.5
    path = declaration.find_study("adapterfusion_minilm")
    _, runs = study_plan.load_study(path)
    minutes = costs.cost_of(runs).two_core_seconds / 60
    print(f"adapterfusion_minilm: {minutes:.0f} for 110")
    assert 110 / 1.5 < minutes < 110 * 1.5
