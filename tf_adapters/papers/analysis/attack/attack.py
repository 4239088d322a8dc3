"""Measures how often synonyms change a trained model's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import pandas as pd
import scipy.special

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.papers.analysis.attack import pwws
from tf_adapters.papers.analysis.attack import wordnet
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support import trained_run
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import at_least_one
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing

if TYPE_CHECKING:
    import argparse


COLUMNS = (
    *("run", "method", "pretraining_steps", "texts", "accuracy"),
    *("accuracy_under_attack", "success_of_all", "success_of_correct"),
    *("queries_per_text", "words_changed", "rules", "tags"),
)
_CHANGED = "texts whose class changed, %"
# Parts of speech of Universal Dependencies, and their letters in WordNet.
_LETTERS = {
    "NOUN": "n",
    "PROPN": "n",
    "VERB": "v",
    "AUX": "v",
    "ADJ": "a",
    "ADV": "r",
}


def attack_summary(results: Sequence[Any]) -> dict[str, Any]:
    """Summarizes the attacks on a run's texts.

    Args:
        results: List of `pwws.AttackResult`, one for each text.

    Returns:
        Dict from some of the names in `COLUMNS` to numbers. There are two
        success rates: the share of all attacked texts, as in OpenAttack, and
        the share of the texts that were classified correctly before, as in
        TextAttack. `words_changed` is
        the mean share of changed words over successful attacks, and
        `queries_per_text` the mean over attacked texts.
    """
    attacked = [one for one in results if one.was_attacked]
    correct = [one for one in results if one.was_correct]
    successes = [one for one in attacked if one.succeeded]
    withstood = [one for one in correct if not one.succeeded]
    return {
        "texts": len(results),
        "accuracy": len(correct) / len(results),
        "accuracy_under_attack": len(withstood) / len(results),
        "success_of_all": _mean(one.succeeded for one in attacked),
        "success_of_correct": _mean(one.succeeded for one in correct),
        "queries_per_text": _mean(one.queries for one in attacked),
        "words_changed": _mean(one.changed / one.words for one in successes),
    }


def _mean(values: Any) -> float:
    values = list(values)
    return float(np.mean(values)) if values else float("nan")


@register("attack")
class Attack(Analysis):
    """Measures how often replacing words by synonyms changes a model's answer.

    Runs PWWS (Ren et al. 2019) on the first texts of a run's validation set,
    with synonyms from WordNet (Han et al. 2021, section 4, figure 5). Reports
    success rates over all texts and over texts that were classified correctly,
    the number of queries, and the share of changed words. Several runs are
    plotted over their steps of pretraining. `--rules` selects the rules of
    OpenAttack or TextAttack. Results for single texts differ from those of
    these programs, because their taggers and lists of stop words are not used.
    Parts of speech come from `--tagger`, a run of task `ud_pos`. If it is not
    set, they are not checked. Stop words are scikit-learn's.
    """

    reads = "model_dirs"

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--texts",
            type=at_least_one,
            default=200,
            help="texts to attack; 200",
        )
        parser.add_argument(
            "--rules", choices=pwws.SEARCHES, default="openattack"
        )
        parser.add_argument("--tagger", help="run folder of task `ud_pos`")
        parser.add_argument("--wordnet", default=wordnet.DEFAULT_FOLDER)
        parser.add_argument(
            "--field", help="text to attack; default: the task's first"
        )

    def table(self, options: Any) -> pd.DataFrame:
        synonyms = _Synonyms(options)
        rows = []
        for folder in options.folders:
            run = trained_run.load_run(folder)
            results = _attack(run, options, synonyms)
            facts = {
                "run": str(folder),
                "method": run.label,
                "pretraining_steps": run.config.pretrain.steps,
                "rules": options.rules,
                "tags": options.tagger or "any",
            }
            rows.append({**facts, **attack_summary(results)})
        return pd.DataFrame(rows, columns=COLUMNS)

    def draw(self, table: Any) -> Any:
        counted = {
            "success_of_all": ("of all", "-"),
            "success_of_correct": ("of those right before", "--"),
        }
        if table.pretraining_steps.nunique() == 1:
            return self._draw_bars(table, counted)
        figure, ((axes,),) = drawing.make_figure(width=6.4)
        groups = table.groupby("method", sort=False)
        for method, group, style in pictures.styled(groups):
            steps = group.groupby("pretraining_steps", as_index=False)
            group = steps.mean(numeric_only=True)
            for column, (words, line) in counted.items():
                axes.plot(
                    group.pretraining_steps,
                    100 * group[column],
                    linestyle=line,
                    label=f"{method}, {words}",
                    **style,
                )
        steps = f"steps of pretraining {_how(table)}"
        drawing.label_axes(axes, steps, _CHANGED, legend_outside=True)
        return figure

    def _draw_bars(self, table: Any, counted: Any) -> Any:
        """Draws success rates as bars, if pretraining steps do not differ."""
        means = table.groupby("method", sort=False).mean(numeric_only=True)
        figure, ((axes,),) = drawing.make_figure(width=3 + 0.9 * len(means))
        series = [
            (words, 100 * means[column], None)
            for column, (words, _) in counted.items()
        ]
        drawing.draw_bars(axes, series, 0.4, 0.38)
        axes.set_xticks(range(len(means)), means.index)
        axes.set_ylim(0, 105)
        drawing.label_axes(
            axes, f"method {_how(table)}", _CHANGED, legend_outside=True
        )
        return figure


def _how(table: Any) -> str:
    return f"({table.texts.iloc[0]} texts, {table.rules.iloc[0]})"


class _Synonyms:
    """Finds the synonyms by which the words of texts may be replaced.

    Args:
        options: Parsed flags of `Attack`: `wordnet`, `tagger` and `rules`.
    """

    def __init__(self, options: Any) -> None:
        self._wordnet = wordnet.WordNet(options.wordnet)
        self._takes_phrases = options.rules == "openattack"
        self._tagger = None
        if options.tagger:
            run = trained_run.load_run(options.tagger)
            if "NOUN" not in (run.task.labels or ()):
                raise UserError(
                    f"--tagger={options.tagger} must be a run of a task whose "
                    "labels are the universal parts of speech, as `ud_pos`."
                )
            self._tagger = run.experiment()

    def of_texts(self, texts: Any) -> list[list[list[Any]]]:
        """Returns, for each text, a list with a list of synonyms per word."""
        return [
            [
                self._of_word(word, letters)
                for word, letters in zip(*pair, strict=True)
            ]
            for pair in zip(texts, self._letters(texts), strict=True)
        ]

    def _letters(self, texts: Any) -> list[list[str]]:
        if self._tagger is None:
            return [["nvar"] * len(words) for words in texts]
        (field,) = self._tagger.task.text_fields
        tagged = self._tagger.predict([{field: words} for words in texts])
        return [
            [_LETTERS.get(tag, "") for tag in answer["tags"]]
            for answer in tagged
        ]

    def _of_word(self, word: str, letters: Any) -> list[Any]:
        lemmas = self._wordnet.lemmas(word, letters)
        choose = pwws.first_words if self._takes_phrases else pwws.single_words
        return choose(lemmas, word)


def _attack(run: Any, options: Any, synonyms: Any) -> list[Any]:
    """Attacks the first validation texts of a run.

    Returns a list with a `pwws.AttackResult` for each text.
    """
    experiment = run.experiment()
    if not isinstance(experiment.model.head, heads.Classification):
        raise UserError(
            f"{run.folder} has another kind of head: attacks need classes."
        )
    field = options.field or run.task.text_fields[0]
    if field not in run.task.text_fields:
        raise UserError(
            f"--field={cut(field)} is not a text field of task "
            f"`{run.task.name}`. It has: {', '.join(run.task.text_fields)}."
        )
    rows = run.rows["validation"][: options.texts]
    lower = options.rules == "openattack"
    words = [pwws.split_words(row[field], lower) for row in rows]
    search = pwws.SEARCHES[options.rules]
    searches = [
        search(row[field], found, row["label"], candidates)
        for row, found, candidates in zip(
            rows, words, synonyms.of_texts(words), strict=True
        )
    ]

    def score(asked: Any) -> Any:
        changed = [{**rows[place], field: text} for place, text in asked]
        examples = experiment.examples(changed, labeled=False)
        outputs = np.stack(experiment.trainer.predict(examples))
        return scipy.special.softmax(outputs.astype("float64"), axis=-1)

    return pwws.run_searches(searches, score)
