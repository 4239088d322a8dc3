"""Models of several trained adapters: Stack, Average, Parallel, BatchSplit."""

from pathlib import Path

from keras import ops

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.layers.reparameterization import stored_name
from tf_adapters.models import composed_members
from tf_adapters.models import composition as trees
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.features_model import FeaturesModel


def compose(encoder, composition, head=None, **options):
    """Returns a model of trained adapters and, optionally, a method to train.

    The members of a composition are adapter folders, models in memory, and
    other compositions. The last member of a stack may also be a method. It is
    trained while the adapters below it are frozen: this is how MAD-X trains a
    task adapter on top of a language adapter. `swap_adapters` then exchanges
    the language adapter.

    Args:
        encoder: `Encoder` that all members were trained on, freshly loaded.
        composition: `Stack`, `Average`, `Parallel` or `BatchSplit`.
        head: See `AdapterModel`. With `None` (default) and without a method,
            the model gets the last member's trained head, if it has one.
            In `Parallel` and `BatchSplit` this holds for each member.
        **options: See `AdapterModel`.

    Returns:
        `AdapterModel`, or a `ParallelModel` for `Parallel` and `BatchSplit`.

    Raises:
        UserError: If a member is missing, damaged, belongs to another encoder,
            trained weights of the encoder itself, or cannot be used at its
            position.

    Examples:
        >>> language = methods.Union((methods.Invertible(), methods.Pfeiffer()))
        >>> german = tf_adapters.adapt(encoder, language)
        >>> model = tf_adapters.compose(
        ...     encoder, tf_adapters.Stack(german, methods.Pfeiffer()), head
        ... )
        >>> tuple(model(features).shape)
        (2, 2)
    """
    if isinstance(composition, trees.Parallel | trees.BatchSplit):
        return ParallelModel(encoder, composition, head, **options)
    composition, method = _top(composition)
    takes_head = method is None and head is None
    below = composed_members.read_composition(
        composition, encoder, with_head=takes_head
    )
    last = trees.leaves(below)[-1]
    takes_head = takes_head and last.head is not None
    model = AdapterModel(
        encoder,
        methods.HeadOnly() if method is None else method,
        last.head if takes_head else head,
        below=methods_of(below),
        **options,
    )
    load_below(model, below)
    if takes_head:
        for variable in model.head_layer.weights:
            variable.assign(last.tensors[variable.path])
    return model


def _top(composition):
    """Splits off the method to train: returns (composition, method or None)."""
    is_tree = isinstance(composition, trees.Composition)
    members = list(composition.members) if is_tree else [composition]
    method = None
    if isinstance(members[-1], methods.Method):
        if not isinstance(composition, trees.Stack) or len(members) == 1:
            raise UserError(
                "A method trains on top of a Stack: Stack(adapter, method). "
                "`adapt` makes the model of a method alone."
            )
        method = members.pop()
        if isinstance(method, methods.Fusion):
            raise UserError(
                "A fusion cannot be stacked on other adapters. `fuse` makes "
                "its model."
            )
        composition = trees.Stack(*members)
    for leaf in trees.leaves(composition):
        if not isinstance(leaf, str | Path | AdapterModel):
            raise UserError(
                "Expected as a composition's member the folder of an adapter, "
                "a model that `adapt` or `load_adapter` returned, or, as the "
                f"last of a Stack, a method. Received: {shown(leaf)}"
            )
    return composition, method


def load_below(model, below):
    """Assigns the weights of a composition's members to a model's slots.

    Args:
        model: `AdapterModel` with such a composition `below`.
        below: Composition of `Member`s.

    Raises:
        AdapterError: If a member's weights do not match its configuration.
    """
    members, values = trees.leaves(below), []
    for member, slots in zip(members, model.slots_below, strict=True):
        variables = {stored_name(v): v for slot in slots for v in slot.weights}
        shapes = {name: v.shape for name, v in variables.items()}
        tensors = {
            name: tensor
            for name, tensor in member.method.unpack(
                member.tensors, shapes
            ).items()
            if not name.startswith("head/")
        }
        path = member.folder and member.folder / adapter_folder.WEIGHTS_FILE
        adapter_folder.check_tensors(variables, tensors, path or member.source)
        values += [(v, tensors[name]) for name, v in variables.items()]
    # Assign only after all checks: the last member may be damaged.
    for variable, value in values:
        variable.assign(value)
    model.members = tuple(members)


def swap_adapters(model, composition):
    """Replaces the frozen adapters below the trained one.

    Args:
        model: `AdapterModel` that `compose` made.
        composition: Folder or model, or a composition of them, with the same
            structure as the adapters that are below now. For example, the
            adapter of another language (MAD-X).

    Raises:
        UserError: If the model has no adapters below, the methods differ, or
            the model is folded.

    Examples:
        >>> german = tf_adapters.adapt(encoder, methods.Pfeiffer())
        >>> french = tf_adapters.adapt(encoder, methods.Pfeiffer())
        >>> model = tf_adapters.compose(
        ...     encoder, tf_adapters.Stack(german, methods.LoRA()), head
        ... )
        >>> tf_adapters.swap_adapters(model, french)
    """
    if model.below is None:
        raise UserError("This model has no adapters below its own.")
    model.check_not_folded()
    if not isinstance(composition, trees.Composition):
        composition = trees.Stack(composition)
    below = composed_members.read_composition(composition, model.encoder_info)
    wanted = trees.tree_to_config(model.below)
    found = trees.tree_to_config(methods_of(below))
    if wanted != found:
        raise UserError(
            "Only adapters of the same methods and settings can be swapped. "
            f"Wanted: {wanted}. Received: {found}"
        )
    load_below(model, below)


def restore(config, members, composition, encoder, folder):
    """Returns the composition of `Member`s below a stored adapter, or `None`.

    Args:
        config: Content of `adapter_config.json`, with the tree as `below`.
        members: The `Member`s recorded there, in the tree's order.
        composition: Composition of folders and models to use instead, or a
            single one, or `None` for the recorded members.
        encoder: Their `Encoder`, freshly loaded.
        folder: Folder of the stored adapter, for errors.

    Raises:
        AdapterError: If the tree is damaged.
    """
    if composition is not None:
        if not isinstance(composition, trees.Composition):
            composition = trees.Stack(composition)
        return composed_members.read_composition(composition, encoder)
    if not config.get("below"):
        return None
    try:
        tree = trees.tree_from_config(config["below"], dict)
        if len(trees.leaves(tree)) != len(members):
            raise ValueError("members")
        return composed_members.placed(tree, members, encoder)
    except (KeyError, TypeError, ValueError) as error:
        raise AdapterError(
            f"{folder}: its `below` is damaged. Copy it again from where it "
            "was trained."
        ) from error


def methods_of(below):
    """Replaces the `Member`s of a composition by their methods, if any."""
    if below is None:
        return None
    return trees.with_leaves(below, (m.method for m in trees.leaves(below)))


class ParallelModel(FeaturesModel):
    """Several adapters, each answering the whole batch or its own rows.

    For batches that mix examples of many tasks in any order, see `load_bank`.

    Args:
        encoder: `Encoder` that all members were trained on.
        composition: `Parallel` or `BatchSplit`.
        head: Head that all members use, or `None` (default) for each member's
            own head.
        **options: See `AdapterModel`.

    Call arguments:
        inputs: Dict as for `AdapterModel`.

    Returns:
        List of the members' outputs: each for the whole batch with `Parallel`,
        each for its own rows with `BatchSplit`.

    Examples:
        >>> one = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> two = tf_adapters.adapt(encoder, methods.LoRA(), head)
        >>> model = tf_adapters.compose(encoder, tf_adapters.Parallel(one, two))
        >>> isinstance(model, tf_adapters.ParallelModel), len(model.models)
        (True, 2)
    """

    def __init__(self, encoder, composition, head=None, **options):
        super().__init__(autocast=False, dtype="float32", trainable=False)
        self.composition = composition
        self.models = [
            compose(
                encoder,
                m if isinstance(m, trees.Composition) else trees.Stack(m),
                head,
                **options,
            )
            for m in composition.members
        ]
        self.built = True

    def make_predict_function(self, force=False):
        for model in self.models:
            model.check_encoder()
        return super().make_predict_function(force)

    def check_features(self, inputs):
        """Raises a `UserError` if the members cannot take these inputs."""
        for model in self.models:
            model.check_features(inputs)

    def feature_shapes(self):
        """Returns a dict from the name of an input to its shape."""
        return self.models[0].feature_shapes()

    def call(self, inputs, training=None):
        sizes = getattr(self.composition, "batch_sizes", None)
        if sizes is None:
            return [model(inputs) for model in self.models]
        rows = inputs["token_ids"].shape[0]
        if rows is not None and rows != sum(sizes):
            raise UserError(
                f"A BatchSplit of {cut(sizes)} rows takes {sum(sizes)}. "
                f"Received: {rows}"
            )
        if rows is None:
            # In a graph for any batch size, a wrong number of rows fails here.
            ids = inputs["token_ids"]
            # Multiple-choice inputs have one more axis.
            further = len(ids.shape) - 1
            ones = ops.ones_like(ids[(slice(None), *[slice(1)] * further)])
            ones = ops.reshape(ones, (sum(sizes), *[1] * further))
            inputs = {**inputs, "token_ids": ids * ones}
        outputs, first = [], 0
        for model, size in zip(self.models, sizes, strict=True):
            part = {k: v[first : first + size] for k, v in inputs.items()}
            outputs.append(model(part))
            first += size
        return outputs
