"""SQuAD v1.1: Houlsby et al. 2019, figure 5, and AdapterBias, figure 4."""

from tf_adapters.tasks.task import Task

# The official evaluation reports F1 and exact match; Houlsby et al. plot F1.
SQUAD = Task(
    name="squad",
    source="squad/v1.1",
    text_fields=("question", "context"),
    head="span",
    cite="Rajpurkar et al. 2016, arXiv:1606.05250",
    label_field="answers",
    id_field="id",
    file_stems={"train": "train-v1.1", "validation": "dev-v1.1"},
)
