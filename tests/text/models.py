"""A small text model and texts for the tests in this folder."""

from tests.fixtures import huggingface_folders
from tf_adapters.text.text_model import TextModel

LABELS = ("negative", "positive")
TEXTS = ["a fine film", "a dull one", "the film", "no", "a dull film", "fine"]
NAMES = ["positive", "negative", "positive"]
NAMES += ["negative", "negative", "positive"]
# By name and by id.
CLASSES = [*NAMES[:3], 0, NAMES[4], 1]
FOLDER = str(huggingface_folders.folder("bert"))


def text_model(method="pfeiffer", folder=FOLDER, **options):
    """Returns a `TextModel` that trains eagerly."""
    if "head" not in options:
        options.setdefault("labels", LABELS)
    model = TextModel.from_preset(folder, method=method, **options)
    eager(model)
    return model


def eager(model):
    """Trains a model for a few steps, eagerly because tracing takes longer."""
    model.compile(run_eagerly=True)
