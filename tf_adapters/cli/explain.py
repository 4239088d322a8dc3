"""`tf-adapters explain RUN TEXT`: explains an answer of a finished run."""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import os
import sys
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import Flag
from tf_adapters.cli.command import said
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import plugins
from tf_adapters.interop import hub_address

if TYPE_CHECKING:
    from tf_adapters.explain.explanation import Explanation
    from tf_adapters.text.text_model import TextModel


def run_explain(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> None:
    """Explains the answer to one text, as text or in a file.

    See `Command.run` for the arguments.

    Raises:
        ConfigError: If the folder or the text is missing.
    """
    if len(arguments) < 2:
        raise ConfigError(
            "`tf-adapters explain` takes the folder of a run and a quoted text "
            '(two for pairs), as in tf-adapters explain runs/x "a fine film". '
            f"Received: {said(arguments)}"
        )
    plugins.load_plugins(options.plugin)
    folder, *texts = arguments
    # Libraries may print messages when they download or load files.
    with contextlib.redirect_stdout(sys.stderr):
        explanation = _explain(folder, texts, options)
    if options.output:
        print(explanation.save(options.output))
        return
    print(explanation.to_text(color=_has_color()))


def _explain(folder: str, texts: list[str], options: Any) -> Explanation:
    # Imported here, so that --help is fast.
    from tf_adapters.runs import remote_folder
    from tf_adapters.text.loading import load

    place = folder
    if not hub_address.is_address(folder):
        place = remote_folder.local(folder)
    adapters = options.adapters or None
    model = load(place, quantize=options.quantize, adapters=adapters)
    row = _row_of(model, texts)
    (explanation,) = model.explain([row], label=options.label)
    return explanation


def _row_of(model: TextModel, texts: list[str]) -> Any:
    """Returns the texts of a command line as a row for `TextModel.explain`.

    Raises:
        ConfigError: If the number of texts is not the model's.
    """
    from tf_adapters.text.columns import usual_fields

    fields = model.text_fields or usual_fields(model.head)
    if len(texts) != len(fields):
        names = " and ".join(f"`{name}`" for name in fields)
        raise ConfigError(
            f"The run reads {names}. After its folder, give a quoted text for "
            f"each. Received: {said(texts)}"
        )
    return texts[0] if len(texts) == 1 else tuple(texts)


def _has_color() -> bool:
    """Returns whether the output is a terminal that may show colors."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


COMMAND = Command(
    name="explain",
    summary="Explains a finished run's answer to a text: which words decide, "
    "how far each block's adapter moves each word, the answers without "
    "adapters, and which members a fusion uses.",
    usage='RUN "TEXT" ["SECOND TEXT"]',
    examples=(
        'tf-adapters explain runs/reviews_pfeiffer_0 "a fine film"',
        'tf-adapters explain runs/x "a fine film" --output=film.html',
    ),
    groups={
        "Output": ("output", "label", "verbose"),
        "Settings": ("quantize", "adapters", "plugin"),
    },
    run=run_explain,
    own_flags=(
        Flag(
            "output",
            "Page (.html) or picture (.png, .svg, .pdf) to write. Default: "
            "text on standard output.",
        ),
        Flag("label", "Class to explain instead of the answer."),
    ),
)
