"""The ten tasks of the AdapterFusion paper besides GLUE tasks and IMDb.

All are scored by accuracy (Pfeiffer et al. 2021, arXiv:2005.00247, table 1).
Fields, label names and splits are from TensorFlow Datasets if it has the task.
The others must be read from local files. The label of a multiple-choice task is
the index of the right choice, starting from 0.
"""

from tf_adapters.tasks.task import THREE_SPLITS
from tf_adapters.tasks.task import Task

_CITE = "Pfeiffer et al. 2021, arXiv:2005.00247, section 4.2 and appendix A.1"
_ALIASES = {"premise": "sentence1", "hypothesis": "sentence2"}
_SECRET_TEST = {"test": "test"}

SICK = Task(
    name="sick",
    text_fields=("sentence1", "sentence2"),
    labels=("ENTAILMENT", "NEUTRAL", "CONTRADICTION"),
    splits=THREE_SPLITS,
    cite=_CITE,
)

SCITAIL = Task(
    name="scitail",
    source="sci_tail",
    text_fields=("premise", "hypothesis"),
    labels=("entails", "neutral"),
    splits=THREE_SPLITS,
    cite=_CITE,
    aliases=_ALIASES,
)

CB = Task(
    name="cb",
    source="super_glue/cb",
    text_fields=("premise", "hypothesis"),
    labels=("entailment", "contradiction", "neutral"),
    metrics=("accuracy", "macro_f1"),
    cite=_CITE,
    aliases=_ALIASES,
    unlabeled_splits=_SECRET_TEST,
)

# The passage comes before the question about it.
BOOLQ = Task(
    name="boolq",
    source="super_glue/boolq",
    text_fields=("passage", "question"),
    labels=("False", "True"),
    cite=_CITE,
    aliases={"passage": "sentence1", "question": "sentence2"},
    unlabeled_splits=_SECRET_TEST,
)

INFERENCE = (SICK, SCITAIL, CB, BOOLQ)

# WinoGrande has five training sets, of which `train_xl` is the largest. The
# paper does not say which one it uses.
WINOGRANDE = Task(
    name="winogrande",
    source="winogrande",
    text_fields=("sentence", "choices"),
    splits={"train": "train_xl", "validation": "validation"},
    head="choice",
    cite=f"Sakaguchi et al. 2020, arXiv:1907.10641; {_CITE}",
    aliases={"sentence": "context"},
    unlabeled_splits=_SECRET_TEST,
    choice_fields=("option1", "option2"),
    blank="_",
)

COMMONSENSE_QA = Task(
    name="commonsenseqa",
    text_fields=("question", "choices"),
    head="choice",
    cite=f"Talmor et al. 2019, arXiv:1811.00937; {_CITE}",
)

SOCIAL_IQA = Task(
    name="socialiqa",
    text_fields=("context", "question", "choices"),
    head="choice",
    cite=f"Sap et al. 2019, arXiv:1904.09728; {_CITE}",
)

COSMOS_QA = Task(
    name="cosmosqa",
    source="cosmos_qa",
    text_fields=("context", "question", "choices"),
    head="choice",
    cite=f"Huang et al. 2019, arXiv:1909.00277; {_CITE}",
    unlabeled_splits=_SECRET_TEST,
    choice_fields=("answer0", "answer1", "answer2", "answer3"),
)

HELLASWAG = Task(
    name="hellaswag",
    source="hellaswag",
    text_fields=("context", "choices"),
    head="choice",
    cite=f"Zellers et al. 2019, arXiv:1905.07830; {_CITE}",
    unlabeled_splits=_SECRET_TEST,
    choice_fields=("endings",),
)

COMMONSENSE = (WINOGRANDE, COMMONSENSE_QA, SOCIAL_IQA, COSMOS_QA, HELLASWAG)

# The UKP Sentential Argument Mining Corpus (Stab et al. 2018) is distributed
# only on request.
ARGUMENT = Task(
    name="argument",
    text_fields=("topic", "sentence"),
    labels=("NoArgument", "Argument_against", "Argument_for"),
    splits=THREE_SPLITS,
    cite="Pfeiffer et al. 2021, arXiv:2005.00247, section 4.2, appendix A.1",
)
