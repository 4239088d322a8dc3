"""Reads the columns of tables: of pandas, of `datasets`, of lists and dicts."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import numbers
import sys
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown

# Names of a table's columns, and a function that reads a column by its name.
Table = tuple[list[str], Callable[[str], list[Any]]]


def read_table(data: Any, known: Collection[str] | None = None) -> Table | None:
    """Returns a table's column names and a function that reads a column.

    Class ids of a `datasets.ClassLabel` are read as the names of their classes,
    and -1, which means no label there, as `None`.

    Args:
        data: A `pandas.DataFrame`, a `datasets.Dataset`, a list of dicts, or a
            dict of columns. For other values, `None` is returned.
        known: Names of classes. If given, ids of a `ClassLabel` stay ids unless
            one of its names is known. Default: `None`, all become names.

    Raises:
        UserError: If `data` is a `datasets.DatasetDict`, or the elements of a
            list are not all dicts.
    """
    pandas, datasets = map(sys.modules.get, ("pandas", "datasets"))
    if pandas and isinstance(data, pandas.DataFrame):
        names = list(dict.fromkeys(map(str, data.columns)))
        return names, lambda name: _frame_column(data, name)
    if datasets and isinstance(data, datasets.Dataset):
        names = data.column_names
        return names, lambda name: _dataset_column(data, name, known)
    if datasets and isinstance(data, getattr(datasets, "DatasetDict", ())):
        raise UserError(
            f"This `DatasetDict` holds the splits {', '.join(data)}. Pass one "
            f"of them: `data[{next(iter(data), 'train')!r}]`."
        )
    if isinstance(data, Mapping):
        keys = {str(name): name for name in data}
        return list(keys), lambda name: listed(data[keys[name]])
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        _check_mappings(data)
        keys = {str(name): name for row in data for name in row}
        return list(keys), lambda name: [row.get(keys[name]) for row in data]
    return None


def _check_mappings(rows: list[Any]) -> None:
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise UserError(
                f"Row {place} (the first is 0) must be a dict, like the first "
                f"one. Received: {shown(row)}"
            )


def listed(values: Any) -> list[Any]:
    """Returns the values of a list, array, tensor or series as a list.

    Raises:
        UserError: If `values` is a single value.
    """
    values = as_array(values)
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise UserError(
            "Expected a list or an array with a value for each text. Received: "
            f"{shown(values)}. Put a single text, row or label into a list: "
            "`[value]`."
        )
    return list(values)


def as_array(values: Any) -> Any:
    """Converts a tensor, or a list of arrays, to an array of NumPy.

    A series becomes a list. Other values do not change. Neither does a list of
    arrays of several shapes.
    """
    if hasattr(values, "to_list"):  # A series of pandas or Polars.
        values = values.to_list()
    if isinstance(values, list | tuple) and values:
        are_arrays = all(isinstance(value, np.ndarray) for value in values)
        is_one = are_arrays and len({value.shape for value in values}) == 1
        return np.stack(values) if is_one else values
    if not hasattr(values, "__array__"):
        return values
    tensor: Any = values
    try:
        return np.asarray(tensor)
    except TypeError:  # A tensor of PyTorch on a GPU.
        return np.asarray(tensor.tolist())


def _frame_column(frame: Any, name: str) -> list[Any]:
    columns = [column for column in frame.columns if str(column) == name]
    if len(columns) > 1:
        raise UserError(
            f"The table has {len(columns)} columns with the name "
            f"`{cut(name)}`. Rename them, or keep the first: "
            "`frame.loc[:, ~frame.columns.duplicated()]`."
        )
    return frame[columns[0]].tolist()


def _dataset_column(
    dataset: Any, name: str, known: Collection[str] | None
) -> list[Any]:
    feature = dataset.features[name]
    # The feature of a list has the feature of its elements.
    names = getattr(getattr(feature, "feature", feature), "names", None)
    values = list(dataset[name])
    if names is None:
        return values
    if known is not None and not {*known} & {*names}:
        names = range(len(names))
    return [_named(v, names) for v in values]


def _named(value: Any, names: Sequence[Any]) -> Any:
    """Replaces a class id, or each class id of a list, by the class's name."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [_named(one, names) for one in value]
    if not isinstance(value, numbers.Integral) or value < -1:
        return value
    if value == -1:
        return None
    return names[int(value)] if value < len(names) else value
