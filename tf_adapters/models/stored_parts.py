"""The method and the head that an adapter folder names."""

from pathlib import Path
import sys

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop.sizes import check_sizes


def plugins_of(*parts):
    """Returns a dict from name to file of the parts that a plug-in registered.

    Args:
        *parts: Method, and head or `None`.
    """
    found = {}
    for part, config in zip(parts, _configs(*parts), strict=True):
        module = type(part).__module__
        if part is not None and not module.startswith("tf_adapters."):
            path = getattr(sys.modules[module], "__file__", None) or module
            found[config["name"]] = Path(path).name
    return found


def _configs(method, head):
    yield methods.to_config(method)
    yield None if head is None else heads.to_config(head)


def read_parts(config, tensors, encoder, folder):
    """Returns the method and the head, or `None`, of an adapter folder.

    Args:
        config: What `read_adapter_config` returned.
        tensors: What the folder holds, a dict from name to array.
        encoder: `Encoder`.
        folder: Where that is, for errors.

    Raises:
        AdapterError: If a plug-in defines one of them, which is not loaded, or
            the tensors do not have the sizes that the method says.
        UserError: If a name or setting is not known.
    """
    known = {**methods.METHODS, **heads.HEADS}
    for name, file in config.get("plugins", {}).items():
        if name not in known:
            raise AdapterError(
                f"{folder} needs `{cut(name)}`, which the plug-in {cut(file)} "
                f"defines. If you trust that file, give --plugin={cut(file)}, "
                "or import it before. Nothing of it was run."
            )
    method, head = methods.from_config(config["method"]), config["head"]
    check_sizes(method, tensors, encoder.backbone.hidden_dim, folder)
    return method, None if head is None else heads.from_config(head)
