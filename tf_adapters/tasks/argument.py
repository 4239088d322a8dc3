"""Argument mining across topics, a task of AdapterFusion.

The UKP Sentential Argument Mining Corpus (Stab et al. 2018) is distributed only
on request, so it must be read from local files.
"""

from tf_adapters.tasks.task import THREE_SPLITS
from tf_adapters.tasks.task import Task

ARGUMENT = Task(
    name="argument",
    text_fields=("topic", "sentence"),
    labels=("NoArgument", "Argument_against", "Argument_for"),
    splits=THREE_SPLITS,
    cite="Pfeiffer et al. 2021, arXiv:2005.00247, section 4.2, appendix A.1",
)
