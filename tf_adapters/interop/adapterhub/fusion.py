"""Reads and writes AdapterHub's setups.

A setup is a folder with a fusion and its members.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common import tensors_file
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.interop import tensor_names
from tf_adapters.interop.adapterhub import checks as adapterhub_checks
from tf_adapters.interop.adapterhub import folder as adapterhub_folder
from tf_adapters.interop.adapterhub.names import PLACES_OF
from tf_adapters.interop.adapterhub.names import Place
from tf_adapters.interop.formats import SETUP_FILE
from tf_adapters.interop.formats import read_json

if TYPE_CHECKING:
    import numpy as np

    from tf_adapters.interop.architectures import Architecture

_FUSION_FILE = "adapter_fusion_config.json"
# AdapterHub's settings for which our fusion supports only these values.
_FIXED = {
    "query": True,
    "key": True,
    "query_before_ln": False,
    "residual_before": False,
    "temperature": False,
    "value_before_softmax": True,
}


def read_fusion(
    folder: Path,
    setup: dict[str, Any],
    shape: methods.EncoderShape,
    architecture: Architecture,
    with_head: bool = True,
) -> tuple[
    methods.Fusion,
    dict[str, Any] | None,
    dict[str, np.ndarray],
    Path,
    list[Path],
]:
    """Reads a setup: AdapterHub's folder with a fusion and all its members.

    Args:
        folder: Path with `adapter_setup.json`.
        setup: Contents of `adapter_setup.json`.
        shape: `EncoderShape` of the encoder.
        architecture: `Architecture` of the encoder.
        with_head: Whether to read the head. Defaults to `True`.

    Returns:
        A tuple of five: the fusion's method, head, tensors and path, as
        `adapterhub.folder.read_adapter` returns them; and a list of the paths
        of the members' files with tensors, in the order of the softmax.
    """
    folder = Path(folder)
    members = _members_of(setup, folder)
    folders = [
        adapterhub_checks.folder_within(folder, member, "adapter")
        for member in members
    ]
    found = [
        adapterhub_folder.read_adapter(
            of_member,
            read_json(of_member / adapter_folder.CONFIG_FILE),
            shape,
            architecture,
            with_head=False,
        )
        for of_member in folders
    ]
    of_fusion = adapterhub_checks.folder_of_fusion(folder, members)
    config = read_json(of_fusion / _FUSION_FILE)
    if config["adapter_names"] != members:
        raise AdapterError(
            f"{of_fusion} is a fusion of {cut(config['adapter_names'])}, but "
            f"{SETUP_FILE} names {cut(members)}."
        )
    method = _fusion_method(config["config"], [f[0] for f in found], members)
    path = adapterhub_folder.weights_file(of_fusion, "model_adapter_fusion")
    tensors = _fusion_tensors(
        method,
        adapterhub_folder.read_weights(path),
        Place(shape, architecture, config["name"]),
        path,
    )
    head, of_head = None, {}
    if with_head:
        head, of_head = _head_of_setup(setup, folder, shape, architecture)
    files = [found_path for *_, found_path in found]
    return method, head, {**tensors, **of_head}, path, files


def _members_of(setup: dict[str, Any], folder: Path) -> list[Any]:
    tree = setup["adapter_setup"]
    leaves = [child.get("children") for child in tree["children"]]
    is_flat = all(child.get("type") == "single" for child in tree["children"])
    if tree["type"] != "Fuse" or not is_flat:
        raise AdapterError(
            f"{folder} is a composition `{cut(tree['type'])}`; tf_adapters "
            "reads `Fuse` of single adapters. Load its adapters one by one "
            "from the folders within."
        )
    return [leaf[0] for leaf in leaves]


def _fusion_method(
    config: dict[str, Any], members: list[Any], names: list[str]
) -> methods.Fusion:
    for key, value in _FIXED.items():
        if config.get(key, value) != value:
            raise AdapterError(
                f"tf_adapters has no fusion with `{key}: {shown(config[key])}`."
            )
    for name, member in zip(names, members, strict=True):
        if member.stacks_as is None:
            raise AdapterError(
                f"The fusion's member `{cut(name)}` is a "
                f"`{methods.name_of(member)}`; in tf_adapters the members are "
                "Houlsby's or Pfeiffer's adapters."
            )
    common = {(m.stacks_as, m.activation, m.leave_out) for m in members}
    if len(common) > 1:
        raise AdapterError(
            "The fusion's members differ in placement, activation or left-out "
            f"blocks: {cut(sorted(map(str, common)))}."
        )
    placement, activation, leave_out = common.pop()
    return methods.Fusion(
        adapters=tuple(names),
        placement=placement,
        units=max(m.units for m in members),
        activation=activation,
        value="dynamic" if config["value"] else "static",
        value_pull=0.01 if config["regularization"] else 0.0,
        leave_out=leave_out,
    )


def _fusion_names(
    method: methods.Fusion, place: Place
) -> list[tensor_names.TensorName]:
    """Returns the `TensorName`s of a fusion's attention layers.

    Args:
        method: `Fusion`.
        place: `Place` whose `adapter` is the fusion's name.
    """
    modules = {}
    for slot in PLACES_OF[method.placement]:
        parent = place.architecture.slots[slot].removesuffix("adapters")
        modules[f"{slot}/fusion"] = f"{parent}adapter_fusion_layer"
    weights = [*tensor_names.linear("query_", "query")]
    weights += tensor_names.linear("key_", "key")[:1]
    if method.value == "dynamic":
        weights += tensor_names.linear("value_", "value")[:1]
    return place.in_blocks(method, modules, weights)


def _biases_of_keys(names: list[tensor_names.TensorName]) -> list[str]:
    """Returns AdapterHub's names of the biases of the key projections.

    These biases add the same number to the scores of all members, so they do
    not change the softmax. Our fusion has no such biases.
    """
    theirs = (name for n in names for name in n.theirs)
    return [n.replace("weight", "bias") for n in theirs if ".key.weight" in n]


def _fusion_tensors(
    method: methods.Fusion,
    tensors: dict[str, np.ndarray],
    place: Place,
    path: Path,
) -> dict[str, np.ndarray]:
    names = _fusion_names(method, place)
    tensors = adapterhub_folder.normalized(tensors, place.architecture)
    unused = _unused_tensors(method, names, place)
    # AdapterHub also writes fusions whose names begin with this name.
    tensors = {
        key: value
        for key, value in tensors.items()
        if f".adapter_fusion_layer.{place.adapter}." in key
        and key not in unused
    }
    return tensor_names.to_ours(names, tensors, path)


def _unused_tensors(
    method: methods.Fusion, names: list[tensor_names.TensorName], place: Place
) -> set[str]:
    """Returns AdapterHub's names of tensors that our fusion does not have.

    These are the biases of the key projections, and the attention in blocks
    that all members leave out, which AdapterHub makes and does not use.

    Args:
        method: `Fusion`.
        names: The `TensorName`s of our fusion.
        place: See `_fusion_names`.
    """
    of_all = _fusion_names(dataclasses.replace(method, leave_out=()), place)
    theirs = {name for n in of_all for name in n.theirs}
    theirs |= set(_biases_of_keys(of_all))
    return theirs - {name for n in names for name in n.theirs}


def _head_of_setup(
    setup: dict[str, Any],
    folder: Path,
    shape: methods.EncoderShape,
    architecture: Architecture,
) -> tuple[dict[str, Any] | None, dict[str, np.ndarray]]:
    name = setup.get("head_setup")
    if name in (None, False, []):
        return None, {}
    if isinstance(name, list) and len(name) == 1:
        name = name[0]
    if isinstance(name, list | dict):
        raise AdapterError(
            f"{folder / SETUP_FILE} has several heads: {cut(name)}. A model of "
            "tf_adapters has one. Load it without a head: with_head=False."
        )
    # `True` stands for the only head of a plain Hugging Face model.
    of_head = folder
    if name is not True:
        of_head = adapterhub_checks.folder_within(folder, name, "head")
    if not (of_head / adapterhub_folder.HEAD_FILE).exists():
        raise AdapterError(
            f"{folder / SETUP_FILE} names the head `{cut(name)}`, and "
            f"{of_head} has none. Copy it too, or load the fusion without its "
            "head: with_head=False."
        )
    return adapterhub_folder.read_head(of_head, shape, architecture)


def write_fusion(
    folder: Path,
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    members: list[tuple[str, dict[str, Any], dict[str, np.ndarray]]],
    shape: methods.EncoderShape,
    architecture: Architecture,
) -> None:
    """Writes a fusion and its members to a folder, as a setup of AdapterHub.

    Args:
        folder: Path of an existing folder.
        config: Contents of our `adapter_config.json`.
        tensors: Dict from our tensor names to arrays.
        members: List of triples: a member's name, its configuration and its
            tensors.
        shape: `EncoderShape` of the encoder.
        architecture: `Architecture` of the encoder.
    """
    folder = Path(folder)
    method: Any = methods.from_config(config["method"])
    names = [name for name, _, _ in members]
    for name, of_member, its_tensors in members:
        adapterhub_checks.check_name(name)
        (folder / name).mkdir()
        adapterhub_folder.write_adapter(
            folder / name,
            name,
            {**of_member, "head": None},
            {k: v for k, v in its_tensors.items() if k[:5] != "head/"},
            shape,
            architecture,
        )
    together = ",".join(names)
    if len(together.encode()) > adapterhub_checks.LONGEST_NAME:
        raise AdapterError(
            f"AdapterHub names a fusion's folder after its {len(names)} "
            f"members, here in {len(together.encode())} bytes. A file system "
            f"allows {adapterhub_checks.LONGEST_NAME}. Give the members' "
            "folders shorter names."
        )
    (folder / together).mkdir()
    facts = adapterhub_folder.facts_of(config, shape, architecture)
    is_dynamic = method.value == "dynamic"
    adapterhub_folder.write_json(
        folder / together / _FUSION_FILE,
        {
            **facts,
            "adapter_names": names,
            "config": {
                **_FIXED,
                "dropout_prob": None,
                "regularization": bool(method.value_pull) and is_dynamic,
                "value": is_dynamic,
                "value_initialized": is_dynamic,
            },
            "name": together,
        },
    )
    of_fusion = _fusion_names(method, Place(shape, architecture, together))
    found = tensor_names.to_theirs(of_fusion, tensors)
    for bias in _biases_of_keys(of_fusion):
        found[bias] = 0 * found[bias.replace(".key.bias", ".query.bias")]
    path = folder / together / "model_adapter_fusion.safetensors"
    tensors_file.write_tensors(path, found)
    head, of_head = None, []
    if config["head"] is not None:
        head = names[0]
        of_head = adapterhub_folder.write_head(
            folder / head, head, config, tensors, facts, architecture
        )
    tensor_names.check_stored([*of_fusion, *of_head], tensors, "AdapterHub")
    leaves = [{"children": [name], "type": "single"} for name in names]
    setup = {
        "adapter_setup": {"children": leaves, "type": "Fuse"},
        "head_setup": head,
        "version": adapterhub_folder.VERSION,
    }
    adapterhub_folder.write_json(folder / SETUP_FILE, setup)
