"""Four tasks of AdapterFusion on inference between two texts, beyond GLUE.

All are scored by accuracy (Pfeiffer et al. 2021, arXiv:2005.00247, table 1).
Fields, label names and splits are from TensorFlow Datasets, except for SICK,
which must be read from local files.
"""

from tf_adapters.tasks.task import THREE_SPLITS
from tf_adapters.tasks.task import Task

_CITE = "Pfeiffer et al. 2021, arXiv:2005.00247, section 4.2 and appendix A.1"
_ALIASES = {"premise": "sentence1", "hypothesis": "sentence2"}

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
    unlabeled_splits={"test": "test"},
)

# The passage comes before the question about it.
BOOLQ = Task(
    name="boolq",
    source="super_glue/boolq",
    text_fields=("passage", "question"),
    labels=("False", "True"),
    cite=_CITE,
    aliases={"passage": "sentence1", "question": "sentence2"},
    unlabeled_splits={"test": "test"},
)

INFERENCE = (SICK, SCITAIL, CB, BOOLQ)
