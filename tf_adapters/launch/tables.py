"""The files of a run's tables, which may be in memory."""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import os
from pathlib import Path
import tempfile
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.config import resolve
from tf_adapters.launch.table_writing import write_json_lines
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.text import columns as text_columns

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


# Maps each argument to the setting that names its file, and to the name of the
# file that is written if the argument is an in-memory table.
_FILES = {
    "data": ("file", "table"),
    "validation": ("validation_file", "validation"),
    "test": ("test_file", "test"),
}


@dataclasses.dataclass(frozen=True)
class TableFiles:
    """Files of a run's tables, including temporary files of tables in memory.

    Attributes:
        layer: Nested dict of settings that name the files and their columns.
        written: Dict from each argument that was an in-memory table, such as
            `"data"`, to the path of the temporary file with this table.
    """

    layer: dict[str, Any]
    written: dict[str, Any]

    @property
    def paths(self) -> list[Path]:
        """List of the paths of the temporary files."""
        return list(self.written.values())

    @property
    def names(self) -> list[tuple[Path, str]]:
        """List of pairs of a temporary file's path and its argument's name."""
        return [(path, argument) for argument, path in self.written.items()]

    def moved_layer(self, folder: Path) -> dict[str, Any]:
        """Returns the settings `layer` with the future paths of its files.

        The path of each temporary file is replaced by its future path in
        `tables/`. The caller must move the files there; this method does not.

        Args:
            folder: Path of the folder that contains `tables/`.
        """
        tables = folder.absolute() / resolve.TABLES
        moved = {
            _FILES[argument][0]: str(tables / path.name)
            for argument, path in self.written.items()
        }
        return {"data": self.layer["data"] | moved}

    def moved_to(self, folder: Path, config: "Config") -> "Config":
        """Returns a copy of `config` with the future paths of its files.

        The path of each temporary file is replaced by its future path in the
        run folder's `tables/`. The caller must move the files there; this
        method does not.

        Args:
            folder: Path of the run folder.
            config: `Config` that names the temporary files.
        """
        paths = self.moved_layer(folder)["data"]
        moved = {_FILES[a][0]: paths[_FILES[a][0]] for a in self.written}
        data = dataclasses.replace(config.data, **moved)
        return dataclasses.replace(config, data=data)


@contextlib.contextmanager
def as_files(
    tables: dict[str, Any],
    text: str | Sequence[str],
    label: str,
    head: str = "classification",
) -> Iterator[TableFiles]:
    """Context manager that writes in-memory tables to temporary files.

    It yields a `TableFiles`. The files are removed at the end of the block.

    Args:
        tables: Dict from `"data"`, `"validation"` and `"test"` to a path, an
            in-memory table, or `None`.
        text: Name of the text column, or names of two text columns.
        label: Name of the label column. Only a test table may lack labels.
        head: Name of the head. Labels are not written if it trains without.
            Defaults to `"classification"`.

    Raises:
        DataError: See `write_json_lines`.
    """
    text, label = text_columns.names_of(text), str(label)
    has_labels = head not in KINDS or KINDS[head].label != "none"
    layer, written = {"text": text, "label": label}, {}
    with tempfile.TemporaryDirectory(prefix="tf_adapters_") as folder:
        for argument, table in tables.items():
            setting, name = _FILES[argument]
            if table is None:
                continue
            if not isinstance(table, str | os.PathLike):
                path = Path(folder, f"{name}.jsonl")
                write_json_lines(
                    *(path, argument, table, text),
                    label if has_labels else None,
                    labeled=argument != "test",
                )
                written[argument] = table = path
            layer[setting] = str(table)
        yield TableFiles({"data": layer}, written)
