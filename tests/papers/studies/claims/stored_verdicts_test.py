"""Tests that the page on claims has the verdicts of the stored results."""

import csv
from pathlib import Path
import re
import shutil

import pytest

from tests.fixtures import studies
from tf_adapters.papers.studies import study as study_lib

DOCS = Path(__file__).parents[4] / "docs"
# For each file, the beginnings of the page's rows, in the order of the study's
# claims. `None`: the claim is not on the page, or needs weights of the runs.
ROWS = {
    "adapterbias_figure4_two_cores": (
        "With few examples AdapterBias is better",
        "With many examples fine-tuning is better",
        "With 125 to 2,000 examples AdapterBias",
    ),
    "adapterbias_table1_one_gpu": (
        "AdapterBias is at most 1.5 points behind Houlsby's",
        "AdapterBias is at most 1.5 points behind BitFit",
        "Fine-tuning is better than AdapterBias",
    ),
    "adapterbias_table3_two_cores": (
        "Without the weights of its tokens AdapterBias",
    ),
    "adapterbias_table4_two_cores": (
        "Sharing the linear layer is better",
        "Sharing the vector makes AdapterBias worse",
        "L0 gates improve AdapterBias",
    ),
    "han2021_figure1_two_cores": (
        "Between lengths of pretraining fine-tuning",
    ),
    "han2021_figure2_one_gpu": ("Without adapters, scores vary more",),
    "han2021_figure4_two_cores": (
        "After pretraining of the same length",
        "They vary less",
    ),
    "han2021_table1_two_cores": (
        "Task-specific pretraining improves adapters",
        "Pretrained adapters are better",
        "Without pretraining adapters are worse",
    ),
    "he2021_figure3_two_cores": (
        "With 500 or 1,000 training examples",
        "With more examples fine-tuning catches up",
    ),
    "he2021_figure4_one_gpu": (
        "Over all rates, fine-tuning varies more",
        "At the highest rate adapters are better",
    ),
    "he2021_table1_two_cores": (
        "With few examples adapters are better",
        "Pretraining on the task's texts improves adapters",
    ),
    "he2021_table2_one_gpu": ("With 1,000 examples adapters are better",),
    "he2021_table6_two_cores": ("In the mean over all evaluations", None),
    "he2021_table7_one_gpu": (
        "Adapters are better than fine-tuning with mixout",
        "Mixout makes adapters worse",
        "Mixout makes fine-tuning better on MRPC",
    ),
    "houlsby2019_figure6_right_one_gpu": (
        "Larger initial weights are worse",
        "Initial weights with deviations",
    ),
    "houlsby2019_table1_one_gpu": (
        "Fine-tuning is better than adapters of size 64",
        "Adapters of size 64 come within two points",
        "Adapters of sizes 4, 64 and 256",
        "Adapters of sizes 4, 64 and 256",
    ),
    "houlsby2019_table2_two_cores": (
        "Fine-tuning is better than adapters on further",
        "Fine-tuning fewer blocks is better",
        "Adapters beat a search",
    ),
    "pfeiffer2021_figure4_two_cores": (
        None,
        None,
        "Fusion over single-task adapters helps on RTE",
    ),
    "pfeiffer2021_figure7_two_cores": (
        "An adapter after the feed-forward network",
        "Both pretrained norms are better",
        "No new norm is better",
    ),
    "pretraining_own_head": ("The same with an encoder's own head",),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_the_page_has_the_verdicts_and_differences_of_stored_results(
    tmp_path, name
):
    found = _claims(tmp_path, name)
    assert len(found) == len(ROWS[name])
    for claim, beginning in zip(found, ROWS[name], strict=True):
        if beginning is None:
            continue
        measured, verdict = _page_row(beginning)
        assert verdict.partition(":")[0] == claim["verdict"], beginning
        difference = re.escape(f"{abs(float(claim['difference'])):.1f}")
        assert re.search(rf"\b(?<!\.){difference}\b", measured), beginning


def _claims(folder, name):
    """Returns the rows of the `claims.csv` that `--report` writes."""
    forms = [one for one in ("two_cores", "one_gpu") if name.endswith(one)]
    shutil.copy(DOCS / "results" / f"{name}.jsonl", folder)
    study = name.removesuffix(f"_{forms[0]}") if forms else name
    options = studies.options(
        Path(study),
        report=True,
        model_dir=str(folder),
        results_file=str(folder / f"{name}.jsonl"),
        **dict.fromkeys(forms, True),
    )
    layer = {"data": {"data_dir": "/some/data"}, "train": {}}
    assert study_lib.run_studies(options, layer) == 0
    return list(csv.DictReader((folder / name / "claims.csv").open()))


def _page_row(beginning):
    """Returns the columns "measured here" and "verdict" of a row."""
    lines = (DOCS / "claims.md").read_text().splitlines()
    (row,) = (one for one in lines if one.startswith(f"| {beginning}"))
    return row.removesuffix(" |").split(" | ")[-2:]
