"""The tasks of Houlsby et al. 2019 beyond GLUE.

The tasks of table 2 are scored by accuracy. TensorFlow Datasets does not have
them, so they must be read from local files. For some tasks, different copies of
the data have different class names. For these, `labels` is empty, and the names
are read from the training file and sorted as Python sorts strings.

SQuAD v1.1 is in figure 5 of Houlsby et al. and in figure 4 of AdapterBias.
"""

from tf_adapters.tasks.task import THREE_SPLITS
from tf_adapters.tasks.task import Task

_NEWSGROUPS = (
    "alt.atheism",
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "comp.windows.x",
    "misc.forsale",
    "rec.autos",
    "rec.motorcycles",
    "rec.sport.baseball",
    "rec.sport.hockey",
    "sci.crypt",
    "sci.electronics",
    "sci.med",
    "sci.space",
    "soc.religion.christian",
    "talk.politics.guns",
    "talk.politics.mideast",
    "talk.politics.misc",
    "talk.religion.misc",
)

_FROM_TRAINING_FILE = ()

_LABELS = {
    "newsgroups": _NEWSGROUPS,
    "cf_airline": ("negative", "neutral", "positive"),
    "cf_corporate_messaging": ("Action", "Dialogue", "Exclude", "Information"),
    "cf_disasters": ("Not Relevant", "Relevant"),
    "cf_economic_news": _FROM_TRAINING_FILE,
    "cf_emotion": _FROM_TRAINING_FILE,
    "cf_global_warming": _FROM_TRAINING_FILE,
    "cf_political_audience": _FROM_TRAINING_FILE,
    "cf_political_bias": _FROM_TRAINING_FILE,
    "cf_political_message": _FROM_TRAINING_FILE,
    "cf_primary_emotions": _FROM_TRAINING_FILE,
    "cf_progressive_opinion": _FROM_TRAINING_FILE,
    "cf_progressive_stance": _FROM_TRAINING_FILE,
    "cf_us_economy": _FROM_TRAINING_FILE,
    "customer_complaints": _FROM_TRAINING_FILE,
    "news_aggregator": _FROM_TRAINING_FILE,
    "sms_spam": ("ham", "spam"),
}

HOULSBY_EXTRA = tuple(
    Task(
        name=name,
        text_fields=("sentence",),
        labels=labels,
        splits=THREE_SPLITS,
        cite="Houlsby et al. 2019, arXiv:1902.00751, section 3.3 and table 2",
        aliases={"sentence": "text"},
    )
    for name, labels in _LABELS.items()
)

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
