"""Kinds of trials: what runs, how it is disturbed, and what must be equal."""

from collections.abc import Callable
import dataclasses
import functools
import math
from typing import Any

from tests.runs import whole_runs
from tests.soak import faults as faults_lib
from tests.soak import programs
from tests.soak import servers
from tests.soak import settings

# Numbers of trials: those of the first kind come first, and so on.
_NUMBERS = 1000


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of trials.

    Attributes:
        name: What the table calls it.
        share: Its share of all trials.
        draw: Function that returns a list of random flags, given a
            `random.Random`.
        program: Function that returns the function to run in a process of its
            own, given flags, run folder and the folder of the data.
        check: Function that raises an error if two finished folders differ.
        check_left: Function that raises an error if a fault left something
            damaged in a folder. Called with it and with that of an undisturbed
            run.
        faults: Dict from name to fault.
        backend: Backend of Keras.
    """

    name: str
    share: float
    draw: Callable[[Any], list[str]]
    program: Callable[[list[str], Any, Any], Callable[[], None]]
    check: Callable[[Any, Any], None] = whole_runs.check_equal
    check_left: Callable[[Any, Any], None] = lambda folder, whole: None
    faults: dict[str, Callable[..., Any]] = dataclasses.field(
        default_factory=lambda: faults_lib.FAULTS
    )
    backend: str = "tensorflow"


def _training(run, arguments, folder, data):
    return functools.partial(
        run,
        [
            *arguments,
            f"--data_dir={data}",
            f"--model_dir={folder}",
            "--params_override=train.checkpoint_seconds=0",
        ],
    )


_TRAIN = functools.partial(_training, programs.train)


def _draw_with(flag):
    return lambda chance: [*settings.draw(chance), flag]


def _draw_text_model(chance):
    return [chance.choice(settings.METHODS), str(chance.randrange(3))]


def _text_model(arguments, folder, data):
    method, seed = arguments
    return functools.partial(programs.fit_text_model, method, int(seed), folder)


def _draw_served(chance):
    names = ("films", "stars", "topics", "words", "questions", "pairs")
    return chance.sample(names, 3)


def _server(names, folder, data):
    return functools.partial(servers.serve_and_ask, names, folder)


KINDS = (
    Kind("a run on one device", 0.66, settings.draw, _TRAIN),
    Kind(
        "a run on two replicas",
        0.1,
        _draw_with("--distribution_strategy=mirrored"),
        functools.partial(_training, programs.train_on_two),
    ),
    Kind(
        "a run with JAX",
        0.1,
        _draw_with("--backend=jax"),
        _TRAIN,
        backend="jax",
    ),
    Kind(
        "fit, save and load of a text model",
        0.1,
        _draw_text_model,
        _text_model,
        programs.check_equal_text_models,
        programs.check_left_text_model,
        faults_lib.FAULTS_OF_PROGRAMS,
    ),
    Kind(
        "a run on two workers",
        0.04,
        _draw_with("--distribution_strategy=multi_worker_mirrored"),
        functools.partial(_training, programs.train_on_workers),
        faults=faults_lib.FAULTS_OF_WORKERS,
    ),
    Kind(
        "a live server",
        0.04,
        _draw_served,
        _server,
        servers.check_answers,
        servers.check_answers,
        faults_lib.FAULTS_OF_SERVERS,
    ),
)


def kind_of(number):
    """Returns the `Kind` of the trial with a number."""
    return KINDS[number // _NUMBERS]


def numbers(trials, backend):
    """Returns the numbers of trials with a backend, the kinds taking turns.

    Args:
        trials: How many trials there are of all kinds.
        backend: Backend of Keras.
    """
    turns = [
        ((i + 1) / kind.share, place * _NUMBERS + i)
        for place, kind in enumerate(KINDS)
        if kind.backend == backend
        for i in range(math.ceil(trials * kind.share))
    ]
    return [number for _, number in sorted(turns)]
