"""The meaning of each metric, and the metrics of each kind of output.

To write the page of metrics:

    python -m tf_adapters.tasks.metrics_page > docs/metrics.md
"""

from tf_adapters.tasks.output_kinds import KINDS

_TITLE = """# Metrics

Made by `python -m tf_adapters.tasks.metrics_page`. Every metric is computed
over a whole split at once, never as a mean over batches. The first metric of a
task selects the checkpoint that is kept;
`--params_override=train.select_by=macro_f1` names another one. A task file
names its metrics with `metrics: [macro_f1, accuracy]`; of a table (`--data`)
with classes they are `accuracy` and `macro_f1`.
"""
_TASKS_OWN = """
## Metrics of built-in tasks

`python train.py --list=tasks` shows the metrics of each built-in task: those of
its benchmark. Matthews correlation for CoLA, F1 and accuracy for MRPC and QQP,
Spearman and Pearson correlation for STS-B, macro F1 for most tasks of TAE.
"""
MEANINGS = {
    "accuracy": "share of rows that are right; for `tagging`, of words",
    "f1": "F1 of the second class of two; only for tasks with two classes",
    "micro_f1": "F1 from the counts of all classes together; with one class a "
    "row it equals accuracy",
    "macro_f1": "mean of the F1 of each class; a rare class counts as much as "
    "a frequent one",
    "matthews": "Matthews correlation, from -1 to 1; 0 if only one class is "
    "predicted",
    "pearson": "Pearson correlation of predicted and right numbers; 0 if all "
    "predictions are equal; for `sentence_vector`, cosines are predicted",
    "spearman": "Spearman rank correlation of predicted and right numbers; 0 "
    "if all predictions are equal; likewise",
    "entity_f1": "F1 of entities, which are right if all their words and their "
    "kind are (seqeval); tags have the form of `B-PER`, `I-PER` and `O`, or "
    "the prefixes of BIOES, BMES or BILOU, and adjacent words with a plain tag "
    "such as `PER` form an entity",
    "entity_precision": "share of predicted entities that are right",
    "entity_recall": "share of right entities that are predicted",
    "answer_f1": "F1 over the words of predicted and right answer (SQuAD v1.1)",
    "exact_match": "share of answers that equal a right one, apart from case, "
    "punctuation and articles (SQuAD v1.1)",
    "mrr": "mean reciprocal rank: mean of one over the rank of an anchor's "
    "positive among all positives and negatives of the split",
    "recall_at_1": "share of anchors whose positive has rank 1",
    "recall_at_5": "share of anchors whose positive is among the first 5",
    "recall_at_10": "share of anchors whose positive is among the first 10",
    "log_likelihood": "mean log probability of the masked tokens, in nats",
    "masked_accuracy": "share of masked tokens whose likeliest token is right",
    "loss": "negative of `log_likelihood`",
}


def page() -> str:
    """Returns the page of metrics, docs/metrics.md, as Markdown."""
    lines = [_TITLE, "| head | metrics | default |", "|---|---|---|"]
    for name, kind in KINDS.items():
        known, default = map(_listed, (kind.metrics, kind.default_metrics))
        lines.append(f"| `{name}` | {known} | {default} |")
    lines += ["", "| metric | what it is |", "|---|---|"]
    lines += [f"| `{name}` | {text} |" for name, text in MEANINGS.items()]
    return "\n".join([*lines, _TASKS_OWN.rstrip()])


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    print(page())
