"""A stand-in for `datasets.Dataset`, because `datasets` is not installed."""

import sys
import types


class Dataset:
    """A table with a text column and a column of class ids."""

    def __init__(self, texts, labels, names, is_list=False):
        self._columns = {"text": texts, "label": labels}
        classes = types.SimpleNamespace(names=names)
        feature = types.SimpleNamespace(feature=classes)
        self.features = {
            "text": types.SimpleNamespace(dtype="string"),
            "label": feature if is_list else classes,
        }

    @property
    def column_names(self):
        return list(self._columns)

    def __getitem__(self, name):
        return self._columns[name]


def table(monkeypatch, *arguments, **options):
    """Returns a `Dataset` that the package takes for one of `datasets`."""
    module = types.SimpleNamespace(Dataset=Dataset)
    monkeypatch.setitem(sys.modules, "datasets", module)
    return Dataset(*arguments, **options)
