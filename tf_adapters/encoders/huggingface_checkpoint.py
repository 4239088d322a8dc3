"""Reads the tensors of a Hugging Face folder by name."""

import pathlib

import numpy as np
import safetensors

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import check_file
from tf_adapters.common.text_files import read_json

# In bytes.
_LARGEST_FILE = 1 << 40


def _names_in_index(path: pathlib.Path) -> list[str]:
    """Returns the file names in a `model.safetensors.index.json`, sorted."""
    try:
        files = read_json(path)["weight_map"]
        names = sorted(set(files.values()))
        # Files outside of the folder are not part of the checkpoint.
        climbing = [n for n in names if pathlib.PurePath(n).name != n]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"`{path}` is damaged: expected `weight_map`, from each tensor to "
            f"its file ({type(error).__name__}: {cut(error)}). Download it "
            "again."
        ) from error
    if climbing:
        raise UserError(
            f"`{path}` names files outside of its folder: {cut(climbing[:3])}. "
            "Expected names without a path; do not trust this checkpoint."
        )
    return names


class HuggingFaceCheckpoint:
    """The tensors of a Hugging Face folder.

    A tensor is read from its file only when `read` is called.

    Attributes:
        folder: Path.
        num_bytes: Total size of the weights files.

    Args:
        folder: Path of a folder with `model.safetensors`, or with
            `model.safetensors.index.json` and the files that it names.
        prefix: Prefix to remove from the names of tensors that start with it.
    """

    def __init__(self, folder: str | pathlib.Path, prefix: str) -> None:
        self.folder = pathlib.Path(folder)
        self._places = {}
        self.num_bytes = 0
        for file_name in self._file_names():
            file = self._open(self.folder / file_name)
            self.num_bytes += (self.folder / file_name).stat().st_size
            for stored in file.keys():  # noqa: SIM118
                name = stored.removeprefix(prefix)
                # Checkpoints converted before 2020 have TensorFlow's names of
                # these weights.
                name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
                name = name.replace("LayerNorm.beta", "LayerNorm.bias")
                self._places[name] = (file, stored)

    @property
    def names(self) -> set[str]:
        """Set of the names of all tensors, without the prefix."""
        return set(self._places)

    def read(self, name: str) -> np.ndarray:
        """Returns the tensor with the given name as a float32 array.

        Raises:
            UserError: If the tensor does not contain floating-point numbers, or
                they are not finite.
        """
        file, stored = self._places[name]
        try:
            tensor = file.get_tensor(stored)
        # Raised if the tensor's dtype does not exist in NumPy.
        except (AttributeError, TypeError, safetensors.SafetensorError) as e:
            raise self._damaged(name, f"cannot be read ({cut(e)})") from e
        if tensor.dtype.kind in "biu":
            raise self._damaged(name, f"is of type {tensor.dtype}")
        tensor = tensor.astype("float32")
        if not np.isfinite(tensor).all():
            raise self._damaged(name, "has values that are not finite")
        return tensor

    def _damaged(self, name: str, what: str) -> UserError:
        return UserError(
            f"Tensor `{cut(name)}` in `{self.folder}` {what}. Expected finite "
            "floating-point numbers; download the file again."
        )

    def _file_names(self) -> list[str]:
        if (self.folder / "model.safetensors").is_file():
            return ["model.safetensors"]
        index = self.folder / "model.safetensors.index.json"
        if index.is_file():
            return _names_in_index(index)
        if list(self.folder.glob("pytorch_model*.bin")):
            raise UserError(
                f"The weights in `{self.folder}` are a pickle "
                "(pytorch_model.bin), which is not opened here, since reading "
                "it can run code. Convert it to safetensors: load the model "
                "with transformers where you trust it and call "
                "`save_pretrained(folder)`."
            )
        raise UserError(f"`{self.folder / 'model.safetensors'}` is missing.")

    def _open(self, path: pathlib.Path) -> safetensors.safe_open:
        try:
            check_file(path, _LARGEST_FILE)
            return safetensors.safe_open(path, framework="numpy")
        except (OSError, UserError, safetensors.SafetensorError) as error:
            raise UserError(
                f"`{path}` cannot be read ({cut(error)}). The file is damaged "
                "or incomplete: download it again."
            ) from error
