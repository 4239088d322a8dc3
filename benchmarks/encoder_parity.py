"""How far encoders are from their own models in PyTorch, over all blocks.

    python -m benchmarks.encoder_parity
    python -m benchmarks.encoder_parity --mpnet=FOLDER  # all-mpnet-base-v2, too

Compares with what `tests/fixtures/make_*_fixtures.py` stored, so no PyTorch is
needed. Prints, for each checkpoint, the number of blocks that are compared, the
largest difference at a token and the largest value. Then prints, for each
family, its largest difference, the methods that it refuses, and the lines of
its files.
"""

import argparse
import pathlib

import numpy as np

from tests import tiny
from tests.fixtures import huggingface_folders
from tests.methods.cases import CASES
import tf_adapters
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.models.adapted_encoder import AdaptedEncoder

_LONG = ("mpnet", "albert", "deberta", "modernbert")
_FILES = pathlib.Path(tf_adapters.__file__).parent / "encoders"


def compare(folder, name, stride=1):
    """Prints a row, and returns the largest difference.

    Args:
        folder: Path of a checkpoint.
        name: Name of the stored outputs.
        stride: Which channels were stored: every one (default), or fewer.
    """
    features, expected = huggingface_folders.expected(name)
    encoder, _ = tf_adapters.load_encoder(folder, with_tokenizer=False)
    outputs = AdaptedEncoder(encoder)(features, return_hidden_states=True)
    wanted = expected["hidden_states"]
    # Of the longest texts only the last block's output is stored.
    states = outputs["hidden_states"][-len(wanted) :]
    tokens = features["padding_mask"] == 1
    differences = [
        np.abs(np.asarray(state)[..., ::stride] - right)[tokens].max()
        for state, right in zip(states, wanted, strict=True)
    ]
    longest = features["token_ids"].shape[1]
    largest = np.abs(wanted).max()
    blocks = max(len(wanted) - 1, 1)
    print(
        f"| {name} | {blocks} | {longest} | {max(differences):.1e} | "
        f"{largest:.1f} |"
    )
    return max(differences)


def refused(family):
    """Returns the methods that a small encoder of a family refuses, sorted."""
    encoder, names = tiny.encoder(family), set()
    for method, _ in CASES.values():
        try:
            tf_adapters.adapt(encoder, method)
        except UserError:
            names.add(methods.name_of(method))
    return sorted(names)


def count_lines(family):
    """Returns the lines of a family's own files."""
    files = _FILES.glob(f"{family}*.py")
    return sum(len(file.read_text().splitlines()) for file in files)


def print_families(differences):
    """Prints what differs between families, given each checkpoint's parity."""
    print("\n| family | difference | methods refused | lines |")
    print("|---|---|---|---|")
    for family in tiny.FAMILIES:
        largest = max(
            difference
            for name, difference in differences.items()
            if name.startswith(family)
        )
        print(
            f"| {family} | {largest:.1e} | "
            f"{', '.join(refused(family)) or 'none'} | {count_lines(family)} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpnet", help="folder of all-mpnet-base-v2")
    mpnet = parser.parse_args().mpnet
    print("| checkpoint | blocks | tokens | difference | largest value |")
    print("|---|---|---|---|---|")
    names = (*huggingface_folders.NAMES, *huggingface_folders.LATER)
    found = {
        name: compare(huggingface_folders.folder(name), name) for name in names
    }
    for name in _LONG:
        folder, name = huggingface_folders.folder(name), f"{name}_long"
        found[name] = compare(folder, name)
    if mpnet:
        found["mpnet_base"] = compare(mpnet, "mpnet_base", stride=32)
    print_families(found)


if __name__ == "__main__":
    main()
