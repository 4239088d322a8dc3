"""The five commonsense tasks of AdapterFusion, which are multiple choice.

All are scored by accuracy (Pfeiffer et al. 2021, arXiv:2005.00247, table 1).
Fields and splits are from TensorFlow Datasets if it has the task. A label is
the index of the right choice, starting from 0.
"""

from tf_adapters.tasks.task import Task

_PAPER = "Pfeiffer et al. 2021, arXiv:2005.00247, section 4.2 and appendix A.1"
_SECRET_TEST = {"test": "test"}

# This is the largest of five training sets; the paper does not say which one it
# uses.
WINOGRANDE = Task(
    name="winogrande",
    source="winogrande",
    text_fields=("sentence", "choices"),
    splits={"train": "train_xl", "validation": "validation"},
    head="choice",
    cite=f"Sakaguchi et al. 2020, arXiv:1907.10641; {_PAPER}",
    aliases={"sentence": "context"},
    unlabeled_splits=_SECRET_TEST,
    choice_fields=("option1", "option2"),
    blank="_",
)

COMMONSENSE_QA = Task(
    name="commonsenseqa",
    text_fields=("question", "choices"),
    head="choice",
    cite=f"Talmor et al. 2019, arXiv:1811.00937; {_PAPER}",
)

SOCIAL_IQA = Task(
    name="socialiqa",
    text_fields=("context", "question", "choices"),
    head="choice",
    cite=f"Sap et al. 2019, arXiv:1904.09728; {_PAPER}",
)

COSMOS_QA = Task(
    name="cosmosqa",
    source="cosmos_qa",
    text_fields=("context", "question", "choices"),
    head="choice",
    cite=f"Huang et al. 2019, arXiv:1909.00277; {_PAPER}",
    unlabeled_splits=_SECRET_TEST,
    choice_fields=("answer0", "answer1", "answer2", "answer3"),
)

HELLASWAG = Task(
    name="hellaswag",
    source="hellaswag",
    text_fields=("context", "choices"),
    head="choice",
    cite=f"Zellers et al. 2019, arXiv:1905.07830; {_PAPER}",
    unlabeled_splits=_SECRET_TEST,
    choice_fields=("endings",),
)

COMMONSENSE = (
    WINOGRANDE,
    COMMONSENSE_QA,
    SOCIAL_IQA,
    COSMOS_QA,
    HELLASWAG,
)
