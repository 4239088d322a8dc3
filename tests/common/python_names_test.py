"""Tests the suggestions for misspelled names in Python."""

import copy
import pickle

import numpy as np
import pytest

import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError


@pytest.mark.parametrize(
    ("guess", "message"),
    [
        (lambda: methods.houlsby(64), r"`tf_adapters.methods.Houlsby\(...\)`"),
        (lambda: methods.bitfit(), r"`tf_adapters.methods.BitFit\(...\)`"),
        (lambda: methods.Houlsbi, "has no `Houlsbi`. Did you mean `Houlsby`?"),
        (lambda: heads.span(), r"head is a class: `tf_adapters.heads.Span\("),
        (lambda: heads.Classifier, "Did you mean `Classification`?"),
        (lambda: tf_adapters.Houlsby, "mean `tf_adapters.methods.Houlsby`?"),
        (lambda: tf_adapters.Span, "mean `tf_adapters.heads.Span`?"),
        (lambda: tf_adapters.load_adaptor, "Did you mean `load_adapter`?"),
    ],
)
def test_a_name_that_is_not_there(guess, message):
    with pytest.raises(AttributeError, match=message):
        guess()


def test_files_of_methods_and_heads_can_be_imported():
    from tf_adapters.heads import span
    import tf_adapters.methods.houlsby as houlsby

    assert houlsby.Houlsby is methods.Houlsby
    assert span.Span is heads.Span


@pytest.mark.parametrize(
    ("guess", "message"),
    [
        (
            lambda: methods.Houlsby(size=64),
            "^Unknown setting of Houlsby, `size`. Did you mean `units`?",
        ),
        (lambda: methods.LoRA(r=4, lora_alpha=8), "Did you mean `rank`?"),
        (lambda: methods.LoRA(alhpa=8), "Did you mean `alpha`?"),
        (
            lambda: methods.from_config({"name": "lora", "r": 4}),
            "Unknown setting `method.r`. Did you mean `method.rank`?",
        ),
        (lambda: heads.Regression(dropout=0), "Did you mean `dropout_rate`?"),
        (lambda: heads.Classification(num_classes=2), "Did you mean `labels`?"),
    ],
)
def test_a_setting_that_is_not_there(guess, message):
    with pytest.raises(UserError, match=message):
        guess()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: methods.Pfeiffer(units=1.5),
            "^`units` of Pfeiffer must be an integer. Received: 1.5",
        ),
        (lambda: methods.Houlsby(units="64"), "an integer. Received: '64'"),
        (lambda: methods.LoRA(rank=10**400), "an integer below 2..63. Rec"),
        (lambda: methods.LoRA(alpha=10**400), "finite number below 2..63. R"),
        (lambda: methods.LoRA(rank=True), "an integer. Received: True"),
        (
            lambda: methods.LoRA(alpha=float("nan")),
            "^`alpha` of LoRA must be a finite number. Received: nan",
        ),
        (lambda: methods.LoRA(dropout=np.inf), "finite number. Received: inf"),
        (lambda: methods.Houlsby(reduction_factor=np.nan), "a finite number"),
        (lambda: methods.DiffPruning(share=np.nan), "a finite number"),
        (lambda: methods.Houlsby(train_layer_norms="no"), "True or False"),
        (lambda: methods.LoRA(projections="query"), "be a list. Received: 'q"),
        (lambda: methods.Houlsby(leave_out=0), "must be a list. Received: 0"),
        (lambda: heads.Regression(dropout_rate=np.nan), "a finite number"),
        (lambda: heads.Span(stride=1.5), "`stride` of Span must be an int"),
        (lambda: heads.MaskedLM(50, 16, mask_share=np.nan), "finite number"),
        (lambda: heads.Tagging(("a", "b"), dropout_rate="0"), "finite number"),
    ],
)
def test_a_value_of_another_type(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_numbers_of_numpy_are_numbers():
    method = methods.LoRA(rank=np.int64(4), alpha=np.float32(8), dropout=0)
    assert method == methods.LoRA(rank=4, alpha=8.0)


def test_methods_and_heads_can_be_copied():
    for one in (methods.Houlsby(units=4), heads.Classification(("a", "b"))):
        assert copy.deepcopy(one) == one
        assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    "labels", [4, "positive", ("one",), (0, 1), ("a", "a"), None]
)
@pytest.mark.parametrize("head", ["Classification", "Tagging", "MultiLabel"])
def test_labels_are_names(head, labels):
    message = f"^`labels` of {head} must be the names of two classes or more"
    with pytest.raises(UserError, match=message):
        getattr(heads, head)(labels=labels)


@pytest.mark.parametrize("head", ["Classification", "MultiLabel"])
@pytest.mark.parametrize("shape", [(2, 3), (2,), (2, 1)])
def test_outputs_of_another_head_are_not_decoded(head, shape):
    message = r"^Expected outputs of shape \(rows, 2\), .* no, yes."
    with pytest.raises(UserError, match=message):
        getattr(heads, head)(("no", "yes")).decode(np.zeros(shape))
