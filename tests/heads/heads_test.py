"""Tests that heads are found by name."""

import pytest

from tf_adapters import heads
from tf_adapters import tasks


def test_the_stride_of_windows_is_a_setting():
    task = tasks.get("squad")
    assert heads.for_task(task).stride == 128
    assert heads.for_task(task, stride=32).stride == 32


@pytest.mark.parametrize("name", ["sst2", "mnli", "stsb"])
def test_a_task_has_its_head(name):
    task = tasks.get(name)
    head = heads.for_task(task)
    assert heads.to_config(head)["name"] == task.head
    assert tuple(getattr(head, "labels", ())) == tuple(task.labels)


def test_unknown_heads_are_refused():
    with pytest.raises(ValueError, match="`tagger`.*classification"):
        heads.from_config({"name": "tagger"})


@pytest.mark.parametrize("rate", [-0.1, 1.0, 15])
@pytest.mark.parametrize("name", ["dropout_rate", "hidden_dropout_rate"])
@pytest.mark.parametrize("kind", ["regression", "span", "choice"])
def test_a_dropout_rate_is_a_share(kind, name, rate):
    cls = heads.HEADS[kind]
    with pytest.raises(ValueError, match=f"`{name}` is the share .*{rate}$"):
        cls(**{name: rate})
