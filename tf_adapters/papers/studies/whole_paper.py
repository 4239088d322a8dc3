"""Runs all studies of a paper, as in `--study=paper:he2021`."""

from collections.abc import Callable
from typing import Any

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid.paper import PAPERS

PREFIX = "paper:"


def run_paper(
    asked: Any, block: str | None, run_study: Callable[..., Any]
) -> int:
    """Runs a paper's studies, and continues if one fails.

    Args:
        asked: `"paper:<name>"`, where the name is a key of `paper.PAPERS`.
        block: Name of the reduced form to run, such as `"small"`, or `None`.
            Studies without this form are skipped.
        run_study: Function that takes a study's name, runs the study, and
            returns an exit status.

    Returns:
        Exit status: 0, or 1 if a study failed.
    """
    outcomes = {}
    for name in _studies_of(asked.removeprefix(PREFIX)):
        path = declaration.find_study(name)
        if block and block not in declaration.read_study(path)[1]:
            outcomes[name] = f"skipped: it has no block `{block}`"
            continue
        print(f"\n== Study {name} ==", flush=True)
        try:
            status = run_study(name)
            outcomes[name] = "FAILED, see above" if status else "done"
        except UserError as error:
            outcomes[name] = f"FAILED: {error}"
            print(f"Error: {error}", flush=True)
    print("\n" + "\n".join(f"{k}: {v}" for k, v in outcomes.items()))
    return int(any(words.startswith("FAILED") for words in outcomes.values()))


def _studies_of(paper: Any) -> list[str]:
    """Returns the sorted names of the library's own studies of a paper."""
    check_known("paper", paper, PAPERS, ConfigError)
    found = [
        path.stem
        for path in sorted(declaration.STUDIES.glob("*.yaml"))
        if declaration.read_study(path)[0].paper == paper
    ]
    if not found:
        raise ConfigError(f"No study says `paper: {cut(paper)}`.")
    return found
