"""How far encoders are from their own models in PyTorch, over all blocks.

    python -m benchmarks.encoder_parity
    python -m benchmarks.encoder_parity --mpnet=FOLDER  # all-mpnet-base-v2, too

Compares with what `tests/fixtures/make_*_fixtures.py` stored, so no PyTorch is
needed. Prints, for each checkpoint, the number of blocks that are compared, the
largest difference at a token and the largest value.
"""

import argparse

import numpy as np

from tests.fixtures import huggingface_folders
import tf_adapters
from tf_adapters.models.adapted_encoder import AdaptedEncoder

_LONG = ("mpnet", "albert", "deberta")


def compare(folder, name, stride=1):
    """Prints a row.

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpnet", help="folder of all-mpnet-base-v2")
    mpnet = parser.parse_args().mpnet
    print("| checkpoint | blocks | tokens | difference | largest value |")
    print("|---|---|---|---|---|")
    names = (*huggingface_folders.NAMES, *huggingface_folders.LATER)
    for name in names:
        compare(huggingface_folders.folder(name), name)
    for name in _LONG:
        compare(huggingface_folders.folder(name), f"{name}_long")
    if mpnet:
        compare(mpnet, "mpnet_base", stride=32)


if __name__ == "__main__":
    main()
