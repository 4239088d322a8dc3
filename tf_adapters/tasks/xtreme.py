"""Cross-lingual tasks: the three of He et al. 2021, section 4, and PAWS-X.

Models are trained and selected on English data, and evaluated in each language.
The groups of languages are from tables 12 to 14. docs/papers.md lists where the
printed averages do not match the printed groups.
"""

from tf_adapters.tasks.glue import MNLI
from tf_adapters.tasks.languages import Languages
from tf_adapters.tasks.task import THREE_SPLITS
from tf_adapters.tasks.task import Task

_CITE = "He et al. 2021, arXiv:2106.03164, section 4; {}"

_POS = Languages(
    names=tuple(
        "en af ar bg de el es et eu fa fi fr he hi hu id it ja kk ko mr nl pt "
        "ru ta te th tl tr ur vi yo zh".split()
    ),
    distant=tuple(
        "ar et eu fi he hu id ja kk ko ta te th tl tr vi yo zh".split()
    ),
    folder="ud/{language}",
    source="xtreme_pos/xtreme_pos_{language}",
    # TensorFlow Datasets has the codes of Tamil and Tagalog swapped.
    source_codes={"ta": "tl", "tl": "ta"},
)
_NER = Languages(
    names=tuple(
        "en ar he vi id jv ms tl eu ml ta te af nl de el bn hi mr ur fa fr it "
        "pt es bg ru ja ka ko th sw yo my zh kk tr et fi hu".split()
    ),
    distant=tuple(
        "ar he vi id jv ms tl eu ml ta te ja ka ko th sw yo my zh kk tr et fi "
        "hu".split()
    ),
    folder="panx/{language}",
    source="wikiann/{language}",
)
_XNLI = Languages(
    names=tuple("en ar bg de el es fr hi ru sw th tr ur vi zh".split()),
    # The printed averages include Greek and Urdu, although these are
    # Indo-European.
    distant=tuple("ar el sw th tr ur vi zh".split()),
    folder="xnli/{language}",
    source="xnli",
)
_PAWSX = Languages(
    names=tuple("en de es fr ja ko zh".split()),
    distant=tuple("ja ko zh".split()),
    folder="pawsx/{language}",
    # Not `xtreme_pawsx` of TensorFlow Datasets, whose training set has only
    # machine translations.
    source="paws_x_wiki/{language}",
)

UD_POS = Task(
    name="ud_pos",
    source=_POS.source.format(language="en"),
    text_fields=("tokens",),
    labels=tuple(
        "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ "
        "SYM VERB X".split()
    ),
    splits={"train": "train", "validation": "dev", "test": "test"},
    head="tagging",
    cite=_CITE.format("Nivre et al. 2018, Universal Dependencies 2.5"),
    label_field="upos",
    aliases={"upos": "tags"},
    folder="ud/en",
    language="en",
    languages=_POS,
)

WIKIANN = Task(
    name="wikiann",
    source=_NER.source.format(language="en"),
    text_fields=("tokens",),
    labels=("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"),
    splits=THREE_SPLITS,
    head="tagging",
    metrics=("entity_f1", "entity_precision", "entity_recall"),
    cite=_CITE.format("Pan et al. 2017; Rahimi et al. 2019"),
    label_field="tags",
    folder="panx/en",
    language="en",
    languages=_NER,
)

XNLI = Task(
    name="xnli",
    source="xnli",
    text_fields=MNLI.text_fields,
    labels=MNLI.labels,
    splits=THREE_SPLITS,
    cite=_CITE.format("Conneau et al. 2018, arXiv:1809.05053"),
    aliases=MNLI.aliases,
    folder="xnli/en",
    language="en",
    languages=_XNLI,
    train_task=MNLI,
)

PAWSX = Task(
    name="pawsx",
    source=_PAWSX.source.format(language="en"),
    text_fields=("sentence1", "sentence2"),
    labels=("different_meaning", "paraphrase"),
    splits=THREE_SPLITS,
    cite="Yang et al. 2019, arXiv:1908.11828; not in He et al. 2021",
    folder="pawsx/en",
    language="en",
    languages=_PAWSX,
)

XTREME = (UD_POS, WIKIANN, XNLI, PAWSX)
