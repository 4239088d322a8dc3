"""What an AdapterHub folder must say to fit an encoder."""

from pathlib import Path
import re

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.interop.architectures import check_model_type
from tf_adapters.interop.formats import SETUP_FILE


def check_encoder(config, shape, architecture, source):
    """Raises an `AdapterError` unless a configuration is of the encoder's kind.

    Args:
        config: What a configuration says at its top.
        shape: `EncoderShape`.
        architecture: `Architecture`.
        source: Path, for errors.
    """
    check_model_type(config.get("model_type"), architecture, source)
    if config.get("hidden_size") != shape.width:
        raise AdapterError(
            f"{source} is an adapter for encoders of width "
            f"{cut(config.get('hidden_size'))}; this one has {shape.width}."
        )


def check_embeddings(method, shape):
    """Raises an error where ours has another place than the library.

    Where embeddings are narrower than the encoder, as in ELECTRA's small
    models, the library's prompts and invertible adapters stand before the
    projection to its width; those of tf_adapters behind it.
    """
    parts = getattr(method, "parts", (method,))
    kinds = (methods.Invertible, methods.PromptTuning)
    narrow = shape.read_in("word_embeddings") != shape.width
    if narrow and any(isinstance(part, kinds) for part in parts):
        raise UserError(
            "Prompts and invertible adapters of AdapterHub have another place "
            "than those of tf_adapters in an encoder whose embeddings are "
            f"narrower ({shape.read_in('word_embeddings')}) than its blocks "
            f"({shape.width}). Take an encoder whose embeddings are as wide as "
            "its blocks."
        )


def check_blocks(tensors, shape, architecture, source):
    """Raises an error if an adapter is of a deeper encoder."""
    pattern = rf"{re.escape(architecture.blocks)}\.(\d+)\."
    blocks = [re.search(pattern, name) for name in tensors]
    last = max((int(found[1]) for found in blocks if found), default=0)
    if last >= shape.num_blocks:
        raise AdapterError(
            f"{source} is of an encoder with {last + 1} blocks or more; this "
            f"one has {shape.num_blocks}."
        )


def check_name(name):
    """Raises an `AdapterError` if PyTorch's modules cannot be called so."""
    if not _is_name(name):
        raise AdapterError(
            "An adapter in AdapterHub's format cannot be called "
            f"`{cut(name)}`: dots, commas and slashes mean something else "
            "there. Give it another name."
        )


def folder_within(folder, name, what):
    """Returns the path of a folder that a set-up names, which lies in its own.

    A stranger's set-up could name any folder of this machine otherwise.

    Args:
        folder: Path of the set-up.
        name: What its configuration says.
        what: What is called so, `"adapter"` for example.

    Raises:
        AdapterError: If it is no name, or a link to somewhere else.
    """
    if not _is_name(name):
        raise AdapterError(
            f"{Path(folder) / SETUP_FILE} names the {what} {ascii(name)[:100]}."
            f" Expected the name of a folder in {folder}, without dots, commas "
            "and slashes. Copy the set-up again, or load its adapters one by "
            "one."
        )
    return check_no_link(Path(folder) / name)


def check_no_link(path):
    """Returns a path, or raises an `AdapterError` if a link stands there."""
    if path.is_symlink():
        raise AdapterError(
            f"{path} is a link, and a set-up's adapters lie in its own folder. "
            "Put a copy of the adapter there."
        )
    return path


def _is_name(name):
    return isinstance(name, str) and re.fullmatch(r"[^.,/\\\0]+", name)
