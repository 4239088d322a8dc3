"""Makes the pictures that a study's file declares, from its finished runs.

They are made as by `tf-adapters analyse`, and stored in `<study>/figures`. A
picture is made again only if its runs, flags or analysis have changed.
"""

import collections
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import hashlib
import inspect
import json
from pathlib import Path
import re
import shutil
import tempfile
from typing import TYPE_CHECKING
from typing import Any

import pandas as pd

from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.text_files import hash_of_json
from tf_adapters.common.text_files import read_json
from tf_adapters.common.text_files import replace_text
from tf_adapters.launch.progress_lines import counted
from tf_adapters.papers.analysis.support import make
from tf_adapters.papers.analysis.support.analysis import ANALYSES
from tf_adapters.papers.studies.grid import settings as study_settings
from tf_adapters.papers.studies.report import cells as study_cells
from tf_adapters.papers.studies.report import figure_runs

if TYPE_CHECKING:
    from tf_adapters.papers.studies.grid.declaration import Study


# The files of a study's report that an analysis reads.
_TABLES = ("runs.csv", "table.csv")


@dataclasses.dataclass(frozen=True)
class Made:
    """A finished picture.

    Attributes:
        figure: Name of the study's figure.
        name: Name of the files, without suffix. An analysis of single runs
            makes several pictures for one figure, and their names end with the
            run's settings.
        csv: Path of the table. It has the settings in the study's grid as
            columns.
        png: Path of the picture.
        analysis: Name of the analysis.
        caption: Text that says what the picture shows, and of which runs.
    """

    figure: str
    name: str
    csv: Path
    png: Path
    analysis: str
    caption: str


def check_figures(study: "Study") -> None:
    """Raises `ConfigError` if a figure's analysis or flags are invalid.

    Args:
        study: `Study`.
    """
    # Imported here, because some analyses take seconds to import.
    if study.figures:
        make.load_all()
    for figure in study.figures:
        try:
            make.parse_options(figure.analysis, figure.options, [])
        except ConfigError as error:
            raise ConfigError(f"Figure `{figure.name}`: {error}") from error


def make_figures(
    study: "Study",
    runs: Sequence[Any],
    folder: Path,
    rows: Sequence[dict[str, Any]] = (),
) -> list[Any]:
    """Makes a study's pictures from the finished runs.

    If the study selects over settings, pictures show the selected runs only. If
    a picture cannot be made, prints why, and continues with the others.

    Args:
        study: `Study`.
        runs: List of the study's `Run`.
        folder: The study's folder, which contains `runs.csv`.
        rows: List of dicts, from `run_rows`. Only needed for selection.

    Returns:
        List of `Made`.
    """
    try:
        check_figures(study)
    except ConfigError as error:
        print(f"No figures: {error}", flush=True)
        return []
    figures, chosen = study.figures, None
    if study.select_over:
        figures = [dataclasses.replace(f, runs=f.runs or {}) for f in figures]
        chosen = _chosen(study, rows)
    sources = figure_runs.find_sources(runs, Path(folder), chosen)
    made = []
    for figure in figures:
        for name, planned in _pictures(figure, sources):
            some = [source for source in planned if source.run is not None]
            try:
                made.append(_make(figure, name, some, Path(folder)))
            except UserError as error:
                print(f"No figure `{name}`: {error}", flush=True)
    return made


def _chosen(study: "Study", rows: Any) -> set[Any]:
    """Returns the set of all `(run id, task)` that the study's table shows."""
    chosen = study_cells.chosen_rows(rows, study.report, study.select_over)
    return {(row["run"], row["task"]) for row in chosen}


def _pictures(figure: Any, sources: Any) -> list[Any]:
    """Returns a list of `(name, sources)`, one for each picture of a figure.

    The names do not depend on which runs are finished.
    """
    wanted = figure.runs or {}
    some = [s for s in sources if study_settings.matches(wanted, s.settings)]
    if ANALYSES[figure.analysis].reads != "model_dir" or len(some) < 2:
        return [(figure.name, some)]
    labels = figure_runs.labels(some)
    names = [f"{figure.name}_{name}" for name in _file_names(labels)]
    return [(name, [source]) for name, source in zip(names, some, strict=True)]


def _file_names(labels: Sequence[str]) -> list[str]:
    """Returns a name for each label, in letters that all file systems have.

    Labels that differ in other letters only get a part of their hash.
    """
    names = [re.sub(r"[^A-Za-z0-9.-]+", "_", one).strip("_") for one in labels]
    counts = collections.Counter(names)
    return [
        name if counts[name] == 1 else f"{name}_{hash_of_json(label)[:8]}"
        for name, label in zip(names, labels, strict=True)
    ]


def _make(figure: Any, name: str, sources: Any, folder: Path) -> "Made":
    """Makes one picture, unless it exists already, and returns its `Made`."""
    if not sources:
        raise UserError("none of its runs is finished.")
    one = ANALYSES[figure.analysis]
    output = own_files.make_folder(folder, "figures") / name
    made = Made(
        figure.name,
        name,
        Path(f"{output}.csv"),
        Path(f"{output}.png"),
        figure.analysis,
        _caption(make.summary(one), sources),
    )
    record, key = Path(f"{output}.json"), _key(figure, one, sources, folder)
    if _is_made(made, record, key):
        return made
    # Some analyses run the models again, which takes minutes.
    print(
        f"Picture `{name}`, of {counted(len(sources), 'run')} ...", flush=True
    )
    with _folders(figure, one, sources, folder) as folders:
        options = make.parse_options(figure.analysis, figure.options, folders)
        table = one.table(options)
    written = figure_runs.with_points(table, one, sources, folder)
    make.write_table_csv(written, output)
    drawn = figure_runs.with_labels(table, one, sources)
    make.write_picture(one, drawn, output)
    replace_text(record, json.dumps(key, indent=1) + "\n")
    return made


def _caption(summary: Any, sources: Any) -> Any:
    """Returns a caption, with the settings that the picture's runs share."""
    shared = {
        key: value
        for key, value in sources[0].point.items()
        if all(source.point.get(key) == value for source in sources)
    }
    words = ", ".join(figure_runs.named(*item) for item in shared.items())
    return f"{summary} ({words})" if words else summary


def _key(figure: Any, one: Any, sources: Any, folder: Path) -> dict[str, Any]:
    """Returns a cache key that covers everything a picture depends on."""
    tables = _TABLES if one.reads == "study_dir" else ()
    code = Path(inspect.getfile(type(one))).read_bytes()
    return {
        "analysis": figure.analysis,
        "options": figure.options,
        "code": hashlib.sha256(code).hexdigest(),
        "tables": [_digest(folder / name) for name in tables],
        "runs": [
            [
                str(source.folder),
                _digest(source.folder / "result.json"),
                source.point,
            ]
            for source in sources
        ],
    }


def _digest(path: Path) -> Any:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_made(made: Any, record: Any, key: Any) -> Any:
    if not (made.csv.exists() and made.png.exists() and record.exists()):
        return False
    try:
        return read_json(record) == key
    except UserError:
        return False  # The picture is then made again.


@contextlib.contextmanager
def _folders(
    figure: Any, one: Any, sources: Any, folder: Path
) -> Iterator[Any]:
    """Yields a list of the folders to analyze: runs, or one study's folder."""
    if one.reads != "study_dir":
        yield [source.folder for source in sources]
    elif figure.runs is None:
        yield [folder]
    else:
        with tempfile.TemporaryDirectory() as some:
            _write_part(folder, sources, Path(some))
            yield [some]


def _write_part(folder: Path, sources: Any, some: Any) -> None:
    """Copies `runs.csv` (only the given runs) and `table.csv` to `some`."""
    runs = pd.read_csv(folder / "runs.csv", dtype=str, keep_default_na=False)
    paths = [(folder / path).resolve() for path in runs.folder]
    wanted = {(s.run.resolve(), s.point["task"]) for s in sources}
    is_wanted = [pair in wanted for pair in zip(paths, runs.task, strict=True)]
    runs = runs.assign(folder=list(map(str, paths)))[is_wanted]
    runs.to_csv(some / "runs.csv", index=False)
    shutil.copy(folder / "table.csv", some)
