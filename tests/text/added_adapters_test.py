"""Tests adapters that are added to a text model, and those without a head."""

import numpy as np
import pytest

from tests.text.models import CLASSES
from tests.text.models import FOLDER
from tests.text.models import LABELS
from tests.text.models import TEXTS
from tests.text.models import eager
from tests.text.models import text_model
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError


@pytest.fixture(name="without_head", scope="module")
def _without_head(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters") / "without"
    text_model("ia3").save_adapter(folder, with_head=False)
    return folder


def test_an_adapter_without_a_head_makes_no_text_model(without_head):
    model = text_model()
    for use in (
        lambda: tf_adapters.load(without_head, encoder=FOLDER),
        lambda: model.add_adapter("other", without_head),
    ):
        with pytest.raises(AdapterError, match="without a head.*load_adapter"):
            use()
    assert (model.active, list(model.adapters.models)) == ("default",) * 1 + (
        ["default"],
    )
    model.predict(TEXTS, verbose=0)


def test_an_adapter_that_cannot_be_added_leaves_the_active_one():
    model = text_model(learning_rate="paper")
    union = methods.Union((methods.LoRA(rank=1), methods.Pfeiffer(units=2)))
    for _ in range(2):
        with pytest.raises(UserError, match="learning_rate|rate"):
            model.add_adapter("other", union, labels=LABELS)
    assert model.active == "default"
    model.predict(TEXTS, verbose=0)


def test_only_the_active_adapter_is_unfolded():
    model = text_model("lora")
    lora = model.adapter_model
    before = model.predict(TEXTS, verbose=0)
    lora.fold()
    model.add_adapter("other", "bitfit", labels=LABELS)
    with pytest.raises(UserError, match=r'Call `set_active\("default"\)`'):
        lora.unfold()
    model.set_active("default")
    lora.unfold()
    np.testing.assert_array_equal(model.predict(TEXTS, verbose=0), before)


def test_an_interrupted_addition_leaves_the_active_adapter(monkeypatch):
    model = text_model()

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model), "compile", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.add_adapter("other", "lora", labels=LABELS)
    assert model.active == "default"
    assert [*model.adapters.models] == ["default"]


def test_an_added_adapter_starts_from_the_models_seed():
    def weights(seed):
        model = text_model(seed=seed, use_encoder_dropout=False)
        model.add_adapter("other", "pfeiffer", labels=LABELS)
        assert not model.adapter_model.use_encoder_dropout
        variables = model.adapter_model.trained_variables().values()
        return np.concatenate([np.ravel(v) for v in variables])

    first, again, other = map(weights, (np.int64(5), 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_text_model_is_made_of_one_adapter_model():
    model = text_model()
    parallel = tf_adapters.compose(
        model.encoder_info,
        tf_adapters.Parallel(
            *(
                tf_adapters.adapt(
                    model.encoder_info,
                    methods.IA3(),
                    heads.Classification(LABELS),
                    name=name,
                )
                for name in "ab"
            )
        ),
    )
    headless = tf_adapters.adapt(model.encoder_info, methods.IA3())
    for other in (parallel, model, headless):
        with pytest.raises(UserError, match="`AdapterModel` with a head"):
            tf_adapters.TextModel.of_adapter(other, preprocessor=None)


def test_vectors_need_the_encoder_that_the_model_was_made_with():
    model = text_model()
    before = model.encode(TEXTS)
    np.testing.assert_array_equal(model.encode(TEXTS), before)
    encoder = model.encoder_info
    other = tf_adapters.TextModel(
        encoder, preprocessor=model.preprocessor, method="full", labels=LABELS
    )
    eager(other)
    other.fit(TEXTS, CLASSES, verbose=0)
    features = model.preprocessor(TEXTS)
    for use in (
        lambda: model.encode(TEXTS),
        lambda: model.adapter_model.encode(features),
    ):
        with pytest.raises(UserError, match="no longer has the weights"):
            use()
    encoder.restore()
    np.testing.assert_array_equal(model.encode(TEXTS), before)


def test_vectors_follow_what_changes_the_model():
    model = text_model(method=methods.Pfeiffer(units=4, reduction_factor=None))
    for variable in model.trainable_variables:
        variable.assign(variable + 0.1)
    before = model.encode(TEXTS)
    with model.adapter_model.without([0, 1]):
        without = model.encode(TEXTS)
    np.testing.assert_array_equal(model.encode(TEXTS), before)
    assert not np.allclose(without, before)
    with model.disabled():
        np.testing.assert_allclose(model.encode(TEXTS), without, atol=1e-6)


def test_a_frozen_text_model_does_not_train():
    model = text_model()
    names = len(model.trainable_variables)
    model.trainable = False
    assert not model.trainable and not model.trainable_variables
    model.trainable = True
    assert len(model.trainable_variables) == names > 0
    features = model.preprocessor(TEXTS)
    ids = np.array([1, 0] * 3)
    losses = [model.train_on_batch(features, ids)[0] for _ in range(2)]
    assert model.test_on_batch(features, ids)[0] != losses[0]
