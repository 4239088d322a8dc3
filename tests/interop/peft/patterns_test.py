"""Tests that PEFT's patterns match the same modules, in linear time."""

import re
import shutil

import numpy as np
import pytest

from tests.interop import folders
import tf_adapters
from tf_adapters.common.errors import AdapterError
from tf_adapters.interop.peft import patterns as peft_patterns

LORA = "peft/bert_lora"
NAMES = [
    "bert",
    "bert.encoder.layer.0.attention.self.query",
    "bert.encoder.layer.0.attention.self.value",
    "bert.encoder.layer.10.attention.output.dense",
    "bert.encoder.layer.10.output.dense",
    "encoder.layer.1.intermediate.dense",
    "roberta.encoder.layer.1.attention.self.key",
]
PATTERNS = [
    "query",
    ".*query",
    r".*\.(query|value)",
    r".*\.(0|1)\.(attention\.self\.query|output\.dense)",
    r".*\.layer\.\d+\.attention\..*",
    r".*layer\.[0-9]{1,2}\..*(?:key|query)$",
    r"^bert\.encoder\.layer\.\d\..*",
    r".*\.(?P<block>1\d*)\..*",
    r".*\bself\b.*",
    r"[^.]+\.encoder.*?dense",
    "layer.0.attention.self.query",
    r"layer\.10\.(attention\.)?output\.dense",
    "query|value",
    ".",
]


@pytest.mark.parametrize("pattern", [*PATTERNS, "(?i).*QUERY"])
def test_a_whole_pattern_names_what_it_does_in_python(pattern):
    config = {"target_modules": pattern}
    is_named = peft_patterns.matcher(config, "target_modules", "x")
    expected = [bool(re.fullmatch(pattern, name)) for name in NAMES]
    assert [is_named([name]) for name in NAMES] == expected


@pytest.mark.parametrize("pattern", [*PATTERNS, "", "a)|(b.*"])
def test_a_pattern_of_an_end_names_what_it_does_in_python(pattern):
    # As PEFT's `get_pattern_key` does it.
    whole = re.compile(rf"(.*\.)?({pattern})$")
    config = {"rank_pattern": {pattern: 3}}
    rank_of = peft_patterns.override(config, "rank_pattern", 8, "x")
    expected = [3 if whole.match(name) else 8 for name in NAMES]
    assert [rank_of([name]) for name in NAMES] == expected


def test_the_first_pattern_that_names_a_module_counts():
    ranks = {"key": 1, "query": 2, r"self\.query": 3}
    config = {"rank_pattern": ranks}
    rank_of = peft_patterns.override(config, "rank_pattern", 8, "x")
    assert [rank_of([name]) for name in NAMES[1:3]] == [2, 8]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (["query"], [1]),
        (["self.query", "value"], [1, 2]),
        (["output.dense"], [3, 4]),
        (["bert"], [0]),
        (["ery", "dens."], []),
        # In a list they are not regular expressions.
        ([".*query", "que.y"], []),
        ("all-linear", range(len(NAMES))),
    ],
)
def test_a_list_names_modules_by_their_ends(ends, expected):
    config = {"target_modules": ends}
    is_named = peft_patterns.matcher(config, "target_modules", "x")
    found = [i for i, name in enumerate(NAMES) if is_named([name])]
    assert found == list(expected)


def _of_setting(setting, pattern):
    return {pattern: 4} if setting.endswith("pattern") else pattern


SETTINGS = ("target_modules", "exclude_modules", "rank_pattern")
SETTINGS += ("alpha_pattern",)


# In Python, the first one would take forever.
@pytest.mark.parametrize("pattern", ["(.+)+!", "(.*.*)*!", "(a|.|.?)+!"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_pattern_takes_long(setting, pattern, tmp_path):
    folder = tmp_path / "task"
    shutil.copytree(folders.FIXTURES / LORA, folder)
    value = _of_setting(setting, pattern)
    folders.edit(folder / "adapter_config.json", setting, value)
    encoder = folders.encoder(LORA)
    if setting != "target_modules":
        # It names no module, so it changes nothing.
        tf_adapters.load_adapter(folder, encoder)
        return
    with pytest.raises(AdapterError, match="names no projection"):
        tf_adapters.load_adapter(folder, encoder)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?!key).*", "invalid perl operator"),
        (r"(a)\1", "invalid escape"),
        (".*++", "bad repetition"),
        (".{,3}", "no lower bound"),
        (".{1,1001}", "invalid repetition"),
        ("(" * 90, "missing"),
    ],
)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_pattern_that_is_not_run_is_one_sentence(setting, pattern, why):
    config = {setting: _of_setting(setting, pattern)}
    sentence = f"`{setting}` has the regular expression .*{why}.*or list"
    with pytest.raises(AdapterError, match=sentence) as raised:
        if setting.endswith("pattern"):
            peft_patterns.override(config, setting, 8, "x")
        else:
            peft_patterns.matcher(config, setting, "x")
    assert len(str(raised.value)) < 400


def test_patterns_of_too_many_states_are_refused():
    # They are read in linear time, and this would still take minutes.
    config = {"target_modules": "(.?){1000}" * 24}
    with pytest.raises(AdapterError, match="too large, with more than 20,000"):
        peft_patterns.matcher(config, "target_modules", "x")
    ranks = {f"(.?){{900}}{i}": 1 for i in range(9)}
    config = {"rank_pattern": ranks}
    with pytest.raises(AdapterError, match="rank_pattern` are too large"):
        peft_patterns.override(config, "rank_pattern", 8, "x")


def test_a_pattern_for_each_module_of_a_large_encoder_is_read():
    modules = "query key value attention.output.dense intermediate.dense"
    ranks = {
        f"bert.encoder.layer.{block}.{module}": block + 1
        for block in range(24)
        for module in [*modules.split(), "output.dense"]
    }
    config = {"rank_pattern": ranks}
    rank_of = peft_patterns.override(config, "rank_pattern", 99, "x")
    assert [rank_of([name]) for name in ranks] == list(ranks.values())


def test_a_pattern_from_the_start_names_modules_without_the_prefix():
    name = "encoder.layer.0.attention.self.query"
    config = {"alpha_pattern": {f"^{name}": 64}}
    alpha_of = peft_patterns.override(config, "alpha_pattern", 8, "x")
    assert alpha_of((name, f"bert.{name}")) == 64
    assert alpha_of(("encoder.layer.1", "bert.encoder.layer.1")) == 8


def test_a_lora_reads_patterns_of_models_without_a_head(tmp_path):
    folder = tmp_path / "task"
    shutil.copytree(folders.FIXTURES / LORA, folder)
    name = "encoder.layer.0.attention.self.query"
    kernels = []
    for alpha in (6, 12):
        pattern = {f"^{name}": alpha}
        folders.edit(folder / "adapter_config.json", "alpha_pattern", pattern)
        model = tf_adapters.load_adapter(folder, folders.encoder(LORA))
        weights = model.trained_variables()
        products = [
            model.method.alpha
            * weights[f"block_0_{projection}/down_kernel"].numpy()
            @ weights[f"block_0_{projection}/up_kernel"].numpy()
            for projection in ("query", "value")
        ]
        kernels.append(products)
    (query, value), (doubled, same) = kernels
    np.testing.assert_allclose(doubled, 2 * query, atol=1e-5)
    np.testing.assert_allclose(same, value, atol=1e-5)
