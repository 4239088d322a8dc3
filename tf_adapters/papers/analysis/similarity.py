"""Compares the representations of the tuned and the untuned encoder."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.data.rows.sources import find_source
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support.analysis import at_least_one
from tf_adapters.papers.analysis.support.analysis import names
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.papers.analysis.support.passes import encoder_passes
from tf_adapters.papers.analysis.support.trained_run import RunsAnalysis
from tf_adapters.report import drawing
from tf_adapters.tasks.languages import in_language

if TYPE_CHECKING:
    import argparse

    from tf_adapters.runs.experiment import Experiment


COLUMNS = ("run", "task", "language", "method", "seed", "block", "half")
COLUMNS += ("similarity", "tokens")
# Number of rows of the similarity matrices that are in memory at a time.
_ROWS = 1000


def similarity(one: np.ndarray, other: np.ndarray, rows: int = _ROWS) -> Any:
    """Returns the Pearson correlation of the cosine similarities in two spaces.

    The correlation is over all pairs of different vectors. The two matrices of
    similarities are never built as a whole: blocks of their rows are computed
    and summed in float64.

    Args:
        one: Array `(n, d)`, a vector for each token.
        other: Array `(n, e)`, vectors of the same tokens.
        rows: Number of rows of the matrices that are in memory at a time.
    """
    one, other = map(_unit, (one, other))
    sums = np.zeros(6)
    for start in range(0, len(one), rows):
        stop = min(start + rows, len(one))
        above = np.arange(len(one)) > np.arange(start, stop)[:, None]
        x = (one[start:stop] @ one.T)[above]
        y = (other[start:stop] @ other.T)[above]
        sums += [len(x), x.sum(), y.sum(), x @ x, y @ y, x @ y]
    count, x, y, xx, yy, xy = sums
    covariance = xy - x * y / count
    return covariance / np.sqrt((xx - x * x / count) * (yy - y * y / count))


def _unit(vectors: Any) -> Any:
    vectors = np.asarray(vectors, "float64")
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def half_of(block: int, num_blocks: int) -> str:
    """Returns "lower", "upper", or "middle" for a block, counted from 1."""
    side = np.sign(2 * block - (num_blocks + 1))
    return {-1: "lower", 0: "middle", 1: "upper"}[side]


def drawn_tokens(
    lengths: Any, is_special: Callable[..., Any], number: int, seed: int = 0
) -> list[Any]:
    """Draws random tokens. Returns a list of `(text's index, position)`.

    Args:
        lengths: Number of tokens of each text.
        is_special: Function that takes a text's index and a position, and
            returns whether the token is special, such as `[CLS]`. Special
            tokens are not drawn.
        number: Number of tokens to draw; all if there are fewer.
        seed: Integer.
    """
    places = [
        (text, position)
        for text, length in enumerate(lengths)
        for position in range(length)
        if not is_special(text, position)
    ]
    if number >= len(places):
        return places
    generator = np.random.default_rng(seed)
    chosen = generator.choice(len(places), number, replace=False)
    return [places[i] for i in sorted(chosen)]


@register("similarity")
class Similarity(RunsAnalysis):
    """Compares each block's vectors before and after tuning (RSA).

    Draws tokens of the validation set, the same for all runs of a task.
    Computes the cosine similarities of all pairs in the untuned and in the
    tuned encoder, and their Pearson correlation for each block (He et al. 2021,
    section 2.2, figures 2, 7 and 8). Special tokens are left out. The diagonal
    is left out too, which the paper does not mention. The table's column `half`
    is "lower" or "upper". There is a panel for each task and a line for each
    method, with the mean over its runs and a band from the smallest to the
    largest value. `--languages` uses the validation sets of other languages
    instead, with a panel for each language that `--data_dir` has.
    """

    columns = COLUMNS

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--tokens",
            type=at_least_one,
            default=5000,
            help="number of tokens to draw; 5000",
        )
        parser.add_argument(
            "--languages", type=names, default=[], help="zh,ja for example"
        )

    def rows(self, run: Any, options: Any) -> Iterator[Any]:
        experiment = run.experiment()
        for language, texts in _texts(run, options.languages):
            facts = run.task.name, language, run.label, run.config.seed
            for numbers in _of_texts(run, experiment, texts, options.tokens):
                yield *facts, *numbers

    def draw(self, table: Any) -> Any:
        groups = table.groupby(["task", "language"], sort=False)
        figure, axes = drawing.make_figure(columns=len(groups), sharey=True)
        for axis, ((task, language), here) in zip(
            axes.flat, groups, strict=True
        ):
            _draw_lines(axis, here)
            axis.set_xticks(sorted(here.block.unique()))
            title = f"{task}, {language}" if language else task
            drawing.label_axes(
                axis, "block", "similarity to the untuned encoder", title
            )
        runs = table.groupby(["task", "language", "method"]).run.nunique()
        pictures.explain_bands(figure, runs.max())
        return figure


def _draw_lines(axis: Any, here: Any) -> None:
    methods = here.groupby("method", sort=False)
    for method, line, style in pictures.styled(methods):
        found = line.groupby("block").similarity.agg(["mean", "min", "max"])
        runs = line.run.nunique()
        name = f"{method}, mean of {runs} runs" if runs > 1 else method
        axis.plot(found.index, found["mean"], label=name, **style)
        axis.fill_between(
            found.index,
            found["min"],
            found["max"],
            alpha=0.2,
            color=style["color"],
        )


def _texts(run: Any, languages: Any) -> Iterator[tuple[Any, ...]]:
    """Yields pairs of a language and its validation rows.

    If `languages` is empty, yields only `""` and the run's validation rows.
    """
    if not languages:
        yield "", run.rows["validation"]
    data_dir = run.config.data.data_dir
    sources = [
        find_source(in_language(run.task, language), "validation", data_dir)
        for language in languages
    ]
    there = [source for source in sources if source.is_there]
    if there and len(there) < len(sources):
        lacking = ", ".join(
            source.task.language for source in sources if not source.is_there
        )
        print(f"{run.task.name}: {data_dir} has no data in {lacking}.")
    # If no language has data, the first `rows()` raises an error that says
    # where to put them.
    for source in there or sources:
        yield source.task.language, source.rows()


def _of_texts(
    run: Any, experiment: Experiment, rows: Any, number: Any
) -> Iterator[tuple[int, str, Any, int]]:
    """Compares a run's tuned and untuned encoder on some rows.

    Yields a tuple for each block: its index (from 1), its half, the similarity
    of the two encoders' outputs, and the number of tokens, at most `number`.
    """
    from tf_adapters import methods
    from tf_adapters.encoders.load import load_encoder
    from tf_adapters.models.adapter_model import adapt

    examples = experiment.examples(rows, labeled=False)
    if examples.has_choices:
        raise UserError(
            f"Similarities are those of texts; task `{run.task.name}` has a "
            "list of texts in each row."
        )
    ragged: Any = examples.token_ids
    ids = ragged.to_list()
    special = set(experiment.packer.special_ids)
    places = drawn_tokens(
        [len(row) for row in ids],
        lambda text, position: ids[text][position] in special,
        number,
    )
    untuned, _ = load_encoder(run.config.encoder, quantize=run.config.quantize)
    plain = adapt(untuned, methods.HeadOnly())
    before: Any = _vectors(plain, experiment, examples, places)
    after: Any = _vectors(experiment.model, experiment, examples, places)
    pairs = zip(before, after, strict=True)
    for block, (one, other) in enumerate(pairs, start=1):
        half = half_of(block, len(before))
        yield block, half, similarity(one, other), len(places)


def _vectors(
    model: Any, experiment: Experiment, examples: Any, places: Any
) -> list[np.ndarray] | None:
    """Returns an array `(n, d)` for each block, with the vectors of `n` tokens.

    `places` are the tokens, pairs of a text's index and a position in the text.
    """
    wanted = {}
    for place, (text, position) in enumerate(places):
        wanted.setdefault(text, []).append((place, position))
    found = None
    for texts, _, states in encoder_passes(
        model,
        experiment.config,
        examples,
        lambda outputs: outputs["hidden_states"][1:],
        return_hidden_states=True,
    ):
        hidden = [state.numpy() for state in states]
        if found is None:
            shape = (len(places), hidden[0].shape[-1])
            found = [np.zeros(shape, "float32") for _ in hidden]
        for row, text in enumerate(texts):
            for place, position in wanted.get(text, ()):
                for block, state in enumerate(hidden):
                    found[block][place] = state[row, position]
    return found
