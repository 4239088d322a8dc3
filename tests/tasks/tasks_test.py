"""Compares tasks with the papers and TensorFlow Datasets' metadata."""

import pathlib
from unittest import mock

import pytest

from tf_adapters import tasks
from tf_adapters.tasks.adapter_fusion import ARGUMENT
from tf_adapters.tasks.adapter_fusion import COMMONSENSE
from tf_adapters.tasks.adapter_fusion import INFERENCE
from tf_adapters.tasks.builtin import BUILTIN
from tf_adapters.tasks.glue import GLUE
from tf_adapters.tasks.houlsby_extra import HOULSBY_EXTRA
from tf_adapters.tasks.houlsby_extra import SQUAD
from tf_adapters.tasks.tae import TAE
from tf_adapters.tasks.xtreme import XTREME

FROM_TFDS = sorted(
    name
    for name, task in tasks.TASKS.items()
    if task.source and not task.source.startswith("builtin:")
)


def test_names_are_unique_and_every_group_is_there():
    groups = (
        (SQUAD,),
        BUILTIN,
        GLUE,
        TAE,
        INFERENCE,
        (ARGUMENT,),
        HOULSBY_EXTRA,
        COMMONSENSE,
        XTREME,
    )
    names = [task.name for group in groups for task in group]
    assert sorted(names) == sorted(tasks.TASKS)
    assert (len(GLUE), len(TAE), len(HOULSBY_EXTRA)) == (9, 8, 17)
    assert {task.name for task in INFERENCE} == {
        "sick",
        "scitail",
        "cb",
        "boolq",
    }


def test_glue_selects_by_the_metric_of_the_papers():
    """Source: Houlsby et al. 2019, table 1, and He et al. 2021, table 2."""
    expected = dict.fromkeys(("sst2", "mnli", "qnli", "rte"), "accuracy")
    expected |= {"cola": "matthews", "mrpc": "f1", "qqp": "f1"}
    expected |= {"stsb": "spearman", "wnli": "accuracy"}
    assert {task.name: task.metrics[0] for task in GLUE} == expected
    assert "pearson" in tasks.get("stsb").metrics


def test_tae_selects_by_the_metric_of_the_paper():
    """Source: He et al. 2021, caption of table 1."""
    micro = {task.name for task in TAE if task.metrics[0] == "micro_f1"}
    macro = {task.name for task in TAE if task.metrics[0] == "macro_f1"}
    assert micro == {"chemprot", "rct"}
    assert macro == {
        "acl_arc",
        "scierc",
        "hyperpartisan",
        "agnews",
        "helpfulness",
        "imdb",
    }


def test_other_papers_select_by_accuracy():
    for task in (*INFERENCE, ARGUMENT, *HOULSBY_EXTRA, *COMMONSENSE):
        assert task.metrics[0] == "accuracy"


def test_numbers_of_classes():
    expected = {"chemprot": 13, "acl_arc": 6, "scierc": 7, "rct": 5}
    expected |= {"newsgroups": 20, "agnews": 4, "mnli": 3, "stsb": 0}
    # Those of others are left to the training file.
    expected |= {"customer_complaints": 0}
    for name, count in expected.items():
        assert len(tasks.get(name).labels) == count


def test_unknown_task_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"Did you mean `sst2`\?.*cola"):
        tasks.get("sst-2")


def _split_names(builder):
    """Returns the splits that the builder defines, without a download."""

    def nothing(urls):
        if isinstance(urls, dict):
            return dict.fromkeys(urls, "nowhere")
        return pathlib.Path("nowhere")

    manager = mock.MagicMock()
    manager.download.side_effect = nothing
    manager.download_and_extract.side_effect = nothing
    splits = builder._split_generators(manager)
    if isinstance(splits, dict):
        return {str(name) for name in splits}
    return {str(split.name) for split in splits}


@pytest.mark.parametrize("name", FROM_TFDS)
def test_definition_agrees_with_tensorflow_datasets(name, tmp_path):
    tfds = pytest.importorskip("tensorflow_datasets")
    task = tasks.get(name)
    builder = tfds.builder(task.source, data_dir=str(tmp_path))
    features = builder.info.features
    fields = {*task.text_fields, *task.choice_fields} - {task.list_field}
    assert fields <= set(features)
    if task.head == "regression":
        assert features[task.label_field].dtype == "float32"
    elif task.head == "span":
        assert {"text", "answer_start"} == set(features["answers"].feature)
    elif task.head == "choice":
        assert "int" in features[task.label_field].dtype.name
    else:
        label = features[task.label_field]
        names = getattr(label, "feature", label).names
        # "_" is no tag.
        assert tuple(name for name in names if name != "_") == task.labels
    used = {*task.splits.values(), *task.unlabeled_splits.values()}
    if task.train_task:
        used.remove(task.splits["train"])
    assert {split.split("[")[0] for split in used} <= _split_names(builder)


def test_slices_of_imdb_and_agnews_part_the_training_set():
    """Source: He et al. 2021, table 1, with 20k and 115k training examples."""
    for name, size in (("imdb", 20_000), ("agnews", 115_000)):
        splits = tasks.get(name).splits
        assert splits["train"] == f"train[:{size}]"
        assert splits["validation"] == f"train[{size}:]"
