"""Tests settings: layers, strict checks, and saving and loading."""

import dataclasses
import re

import pytest
import yaml

from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.config import task as config_task


def test_later_layers_win():
    resolved = resolve.resolve_config(
        {"task": "sst2", "method": "houlsby"},
        {"train": {"learning_rate": 1e-3, "epochs": 7}},
        {"train": {"learning_rate": 5e-4}, "method": {"units": 8}},
    )
    assert resolved.train.learning_rate == 5e-4
    assert resolved.train.epochs == 7
    assert resolved.method == methods.Houlsby(units=8)


def test_a_later_method_drops_the_preset_of_the_earlier():
    resolved = resolve.resolve_config(
        {"task": "sst2", "method": "houlsby"}, {"method": "full"}
    )
    assert resolved.method == methods.Full()


def test_a_later_method_drops_the_settings_of_the_earlier():
    file = {"task": "sst2", "method": {"name": "houlsby", "units": 256}}
    resolved = resolve.resolve_config(file, {"method": "pfeiffer"})
    assert resolved == resolve.resolve_config({**file, "method": "pfeiffer"})
    bare = {"method": {"units": 8}}
    resolved = resolve.resolve_config(file, bare, {"method": "pfeiffer"})
    assert resolved.method.units == 8


def test_units_win_over_a_presets_reduction_factor():
    layers = {"task": "x", "method": "pfeiffer"}, {"method": {"units": 256}}
    method = resolve.resolve_config(*layers).method
    assert method.units == 256 and method.reduction_factor is None
    assert resolve.resolve_config(layers[0]).method.reduction_factor == 16


def test_units_win_over_a_reduction_factor_of_an_earlier_layer():
    layers = (
        {"task": "x", "method": {"name": "houlsby", "reduction_factor": 8}},
        {"method": {"units": 32}},
    )
    assert resolve.resolve_config(*layers).method.reduction_factor is None
    assert resolve.resolve_config(layers[0]).method.reduction_factor == 8


def test_numbers_of_a_method_are_numbers():
    override = resolve.parse_override("method.l0_lambda=1e-5")
    layers = {"task": "x", "method": "adapter_bias"}, override
    assert resolve.resolve_config(*layers).method.l0_lambda == 1e-5


def test_overrides_with_lists_and_numbers():
    values = resolve.parse_override(
        "method.leave_out=[0,1],train.learning_rate=3e-4,method.units=256"
    )
    resolved = resolve.resolve_config(
        {"task": "x"}, {"method": "houlsby"}, values
    )
    assert resolved.method.leave_out == (0, 1)
    assert resolved.method.units == 256
    assert resolved.train.learning_rate == 3e-4


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"a,b"', "a,b"),
        ("'it''s, so'", "it's, so"),
        (r'"\", x"', '", x'),
        ('["a,]", "b"]', ["a,]", "b"]),
        ("don't", "don't"),
    ],
)
def test_a_comma_in_quotes_parts_nothing(value, expected):
    values = resolve.parse_override(f"head.blank={value},seed=1")
    assert values == {"head": {"blank": expected}, "seed": 1}


def test_a_value_cut_at_its_comma_is_reported_of_quotes():
    with pytest.raises(
        ConfigError, match=r"Received: b\. .* in quotes: `'head"
    ):
        resolve.parse_override("head.blank=a,b")


def test_seeds_are_those_that_the_generators_take():
    largest = 2**32 - 1
    assert (
        resolve.resolve_config({"task": "x", "seed": largest}).seed == largest
    )
    with pytest.raises(ConfigError, match="`seed` must be at most 4294967295"):
        resolve.resolve_config({"task": "x", "seed": 5_000_000_000})


@pytest.mark.parametrize("name", presets.preset_names())
def test_every_preset_resolves_and_survives_a_file(name, tmp_path):
    settings = {"task": "sst2", "method": name}
    if name == "multitask":
        settings = {"method": {"name": name, "tasks": ["sst2", "rte"]}}
    resolved = resolve.resolve_config(settings)
    resolve.save_config(resolved, tmp_path / "config.yaml")
    assert resolve.load_config(tmp_path / "config.yaml") == resolved


def test_a_method_needs_no_preset():
    assert "invertible" not in presets.preset_names()
    resolved = resolve.resolve_config({"task": "sst2", "method": "invertible"})
    assert resolved.method == methods.Invertible()


def test_a_union_is_made_of_presets():
    parts = [{"name": "pfeiffer", "units": 8}, "invertible"]
    resolved = resolve.resolve_config(
        {"task": "sst2", "method": {"name": "union", "parts": parts}}
    )
    expected = methods.Union((methods.Pfeiffer(units=8), methods.Invertible()))
    assert resolved.method == expected


@pytest.mark.parametrize("name", presets.preset_names())
def test_every_preset_says_where_its_numbers_are_from(name):
    """The source is in its comment, or in a preset that the comment names."""
    text = (presets.PRESETS / f"{name}.yaml").read_text()
    known = _cited(text)
    for other in re.findall(r"`(\w+)`", text):
        path = presets.PRESETS / f"{other}.yaml"
        if path.exists():
            known |= set(_numbers(yaml.safe_load(path.read_text())))
    uncited = set(_numbers(yaml.safe_load(text))) - known
    assert not uncited, f"{name}: no source of {sorted(uncited)}"


def _cited(text):
    """Returns the numbers in a preset's comment; words count as digits."""
    comment = " ".join(line for line in text.splitlines() if line[:1] == "#")
    words = {"zero": 0, "two": 2, "five": 5, "ten": 10, "twenty": 20}
    numbers = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", comment)
    # 2/3 and the like.
    parts = re.findall(r"(\d+)/(\d+)", comment)
    fractions = {int(a) / int(b) for a, b in parts if int(b)}
    negative = re.findall(r"-\d+(?:\.\d+)?", comment)
    found = set(map(float, [*numbers, *negative])) | fractions
    return found | {n for word, n in words.items() if word in comment.lower()}


def _numbers(values):
    """Yields the numbers among nested settings."""
    for value in values.values():
        if isinstance(value, dict):
            yield from _numbers(value)
        elif isinstance(value, list):
            for part in value:
                if isinstance(part, dict):
                    yield from _numbers(part)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield float(value)


def test_an_empty_section_keeps_the_settings_before_it():
    """In YAML, all lines of the section may be comments."""
    layer = {"task": "sst2", "method": "pfeiffer"}
    given = {**layer, "data": {"max_length": 7}}
    empty = {"train": None, "data": None, "pretrain": None}
    expected = resolve.resolve_config(given)
    for layers in ((given, empty), (given, empty, {"data": {}, "train": {}})):
        assert resolve.resolve_config(*layers) == expected
    with pytest.raises(ConfigError, match="`train` must be a mapping"):
        resolve.resolve_config(layer, {"train": 5}, {"train": {}})


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"tasks": "sst2"}, "Unknown setting `tasks`. Did you mean `task`"),
        (
            {"train": {"learning_rat": 1}},
            "`train.learning_rat`. Did you mean `train.learning_rate`",
        ),
        ({"method": "houlsbi"}, "Did you mean `houlsby`"),
        ({"method": {"unit": 3}}, "`method.unit`. Did you mean `method.units`"),
        ({"method": {"units": "abc"}}, "`method.units` must be of type int"),
        ({"method": {"leave_out": 3}}, "must be a list of integers"),
        ({"train": {"epochs": 0}}, "`train.epochs` must be at least 1"),
        ({"seed": -1}, "`seed` must be at least 0"),
        ({"seed": 2**32}, "`seed` must be at most 4294967295. Received: 42"),
        ({"train": 5}, "`train` must be a mapping"),
        ({"train": {"epochs": "many"}}, "`train.epochs` must be of type int"),
        ({"train": {"epochs": 2.5}}, "`train.epochs` must be of type int"),
        (
            {"train": {"precision": "half"}},
            "`train.precision`, `half`. Known: float32",
        ),
        ({"seed": True}, "`seed` must be of type int"),
        ({"method": 5}, "`method` must be a name, or a mapping"),
        ({"data": 5}, "`data` must be a mapping"),
        ({"members": {"settings": "lora"}}, "`members.settings` must be a map"),
        (
            {"data": {"max_train_examples": 9, "low_resource": 8}},
            r"`data.max_train_examples` \(9\) and `data.low_resource` \(8\)",
        ),
        (
            {"data": {"train_examples_of": {"rte": 9}, "low_resource": 8}},
            "`data.train_examples_of` has no effect",
        ),
    ],
)
def test_mistakes_are_named(layer, message):
    with pytest.raises(ConfigError, match=message):
        resolve.resolve_config({"task": "sst2"}, layer)


def _task_file(tmp_path, file="some.yaml", name="tickets"):
    (tmp_path / file).write_text(
        f"name: {name}\ntext_fields: [text]\nlabels: [a, b]\n"
        "files: {train: t.csv, validation: v.csv}\n"
    )
    return {"data": {"task_file": str(tmp_path / file)}}


def test_a_task_file_names_the_task(tmp_path):
    layer = _task_file(tmp_path)
    assert resolve.resolve_config(layer).task == "tickets"
    resolved = resolve.resolve_config({"task": "sst2"}, layer, {"seed": 3})
    assert resolved.task == "tickets"
    assert resolved.data.task_file == layer["data"]["task_file"]
    resolve.save_config(resolved, tmp_path / "config.yaml")
    assert resolve.load_config(tmp_path / "config.yaml") == resolved


def test_a_task_file_may_be_in_the_home_folder(tmp_path, monkeypatch):
    _task_file(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    layer = {"data": {"task_file": "~/some.yaml"}}
    resolved = resolve.resolve_config(layer)
    assert resolved.task == "tickets"
    assert config_task.declared_task(resolved).labels == ("a", "b")


def test_a_later_task_drops_an_earlier_task_file(tmp_path):
    layer = _task_file(tmp_path)
    resolved = resolve.resolve_config(layer, {"task": "sst2"})
    assert (resolved.task, resolved.data.task_file) == ("sst2", None)
    resolved = resolve.resolve_config(layer, {"task": "tickets"})
    assert resolved.data.task_file == layer["data"]["task_file"]
    other = _task_file(tmp_path, "other.yaml", "other")
    assert resolve.resolve_config(layer, other).task == "other"


def test_a_task_and_the_file_of_another_is_refused(tmp_path):
    layer = {**_task_file(tmp_path), "task": "sst2"}
    with pytest.raises(ConfigError, match="`tickets`.*Give one of the"):
        resolve.resolve_config(layer)


@pytest.mark.parametrize(
    "task", [{"metrics": ["macro_f1"]}, {"labels": ["b", "a"]}, 5, ["tickets"]]
)
def test_settings_of_a_task_are_refused_next_to_its_file(tmp_path, task):
    file = _task_file(tmp_path)
    layers = [{"task": task}, file]
    for some in (layers, layers[::-1], [{**file, "task": task}], layers[:1]):
        with pytest.raises(ConfigError, match="`task` is a name.*task file"):
            resolve.resolve_config(*some)


def test_paths_become_absolute_and_names_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in ("here", "minilm"):
        (tmp_path / folder).mkdir()
    layer = _task_file(tmp_path)
    layer["data"]["task_file"] = "some.yaml"
    layer["data"]["data_dir"] = "~/here"

    def absolute(encoder):
        return resolve.with_absolute_paths(
            resolve.resolve_config(layer, {"encoder": encoder})
        )

    names = ("minilm", "bert_base_en_uncased", "hf://owner/model")
    assert [absolute(name).encoder for name in names] == list(names)
    assert absolute("here").encoder == str(tmp_path / "here")
    assert absolute("here").data.task_file == str(tmp_path / "some.yaml")
    assert absolute("here").data.data_dir == str(tmp_path / "here")
    given = {"stack_on": "hf://me/en@v1", "init_adapter": "here"}
    given["language_adapters"] = {"de": "hf://me/de", "fr": "there"}
    given["method"] = methods.Fusion(adapters=("hf://me/a", "b"))
    config = dataclasses.replace(absolute("here"), **given)
    found = resolve.with_absolute_paths(config)
    assert found.stack_on == "hf://me/en@v1"
    assert found.init_adapter == str(tmp_path / "here")
    assert found.language_adapters["de"] == "hf://me/de"
    assert found.method.adapters == ("hf://me/a", str(tmp_path / "b"))
    without = resolve.resolve_config({"task": "sst2"})
    assert resolve.with_absolute_paths(without) == without


def test_a_missing_task_is_named():
    with pytest.raises(ConfigError, match="`task` is missing"):
        resolve.resolve_config({})


@pytest.mark.parametrize("text", ["units", "=3", "method.leave_out=[0"])
def test_malformed_overrides(text):
    with pytest.raises(ConfigError):
        resolve.resolve_config({"task": "x"}, resolve.parse_override(text))


@pytest.mark.parametrize("text", ["a: [", "- 1", ""])
def test_malformed_files(text, tmp_path):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(ConfigError):
        resolve.load_yaml(tmp_path / "x.yaml")


def test_configurations_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        resolve.resolve_config({"task": "x"}).seed = 3


def test_a_task_file_that_moved_may_be_named_again(tmp_path):
    saved = {**_task_file(tmp_path), "task": "tickets"}
    moved = _task_file(tmp_path, "moved.yaml")
    (tmp_path / "some.yaml").unlink()
    resolved = resolve.resolve_config(saved, moved)
    assert resolved.task == "tickets"
    assert resolved.data.task_file == moved["data"]["task_file"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("warmup_fraction", 100, "a fraction of the steps"),
        ("steps_per_loop", 0, "at least 1"),
        ("early_stopping_patience", 0, "at least 1"),
        ("weight_decay", float("nan"), "at least 0"),
    ],
)
def test_numbers_that_would_train_wrongly(key, value, message):
    with pytest.raises(ConfigError, match=message):
        resolve.resolve_config({"task": "sst2", "train": {key: value}})


def test_the_encoder_next_to_a_run_moves_with_it(tmp_path):
    run = tmp_path / "runs" / "rte"
    run.mkdir(parents=True)
    encoder = str(tmp_path / "runs" / "encoder")
    layer = {"task": "rte", "encoder": encoder}
    resolve.save_config(resolve.resolve_config(layer), run / "config.yaml")
    assert "encoder: ../encoder\n" in (run / "config.yaml").read_text()
    assert resolve.load_config(run / "config.yaml").encoder == encoder
    (tmp_path / "runs").rename(tmp_path / "moved")
    loaded = resolve.load_config(tmp_path / "moved" / "rte" / "config.yaml")
    assert loaded.encoder == str(tmp_path / "moved" / "encoder")


def test_what_many_machines_trained_is_read_on_one(tmp_path):
    settings = {"task": "sst2", "method": "houlsby"}
    settings |= {"distribution_strategy": "tpu", "tpu": "name"}
    settings["data"] = {"batching": "fixed"}
    resolve.save_config(
        resolve.resolve_config(settings), tmp_path / "config.yaml"
    )
    values = resolve.load_for_one_machine(tmp_path / "config.yaml")
    assert values["distribution_strategy"] == "one_device"
    assert values["tpu"] == ""
    assert values["task"] == "sst2"
