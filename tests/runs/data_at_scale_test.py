"""Whole runs whose data lie on disk, or come from a service, are the same."""

from pathlib import Path
import subprocess
import sys
import textwrap

import pytest

from tests import commands
from tests.runs import whole_runs
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.data.batches import tf_data_service


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert commands.run(folder, whole_runs.SETTINGS) == 0
    return folder


def _settings(**data):
    return resolve.merge(whole_runs.SETTINGS, {"data": data})


@pytest.mark.slow
def test_with_a_token_cache(whole, tmp_path):
    cache = tmp_path / "cache"
    settings = _settings(cache_dir=str(cache))
    assert commands.run(tmp_path / "run", settings) == 0
    whole_runs.check_equal(tmp_path / "run", whole)
    assert [path for path in cache.iterdir() if path.is_dir()]
    # Where its data lie does not make it another run.
    assert commands.run(whole, settings) == 0


@pytest.mark.slow
def test_with_a_service_of_two_workers(whole, tmp_path):
    dispatcher = tf_data_service.serve()
    host = dispatcher.target.removeprefix("grpc://")
    workers = [tf_data_service.serve(dispatcher=host) for _ in range(2)]
    settings = _settings(
        cache_dir=str(tmp_path / "cache"), service=dispatcher.target
    )
    assert commands.run(tmp_path / "run", settings) == 0
    whole_runs.check_equal(tmp_path / "run", whole)
    del workers


def test_a_service_needs_a_cache(tmp_path):
    with pytest.raises(ConfigError, match=r"`data\.cache_dir`"):
        resolve.resolve_config(
            {"task": "x", "method": "houlsby"},
            {"data": {"service": "grpc://localhost:1"}},
        )


# Each row has a field that nobody reads, and is small without it.
_MANY = 800_000
_PROGRAM = textwrap.dedent(
    """
    import resource, sys
    from tests import commands
    from tests.runs import whole_runs
    from tf_adapters.config import resolve

    folder, cache, gigabytes = sys.argv[1:]
    limit = int(float(gigabytes) * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    data = {"data_dir": folder, "max_length": 16, "max_train_examples": None}
    if cache:
        data["cache_dir"] = cache
    settings = resolve.merge(
        whole_runs.SETTINGS,
        {
            "task": "sst2",
            "data": data,
            "train": {"epochs": 1, "max_steps": 3, "batch_size": 512},
        },
    )
    status = commands.run(folder + "/run", settings)
    used = open("/proc/self/status").read()
    print(used[used.index("VmData"):].splitlines()[0], file=sys.stderr)
    sys.exit(status)
    """
)


def _run(folder, cache, gigabytes):
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, folder, cache, str(gigabytes)],
        cwd=whole_runs.ROOT,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_data_larger_than_the_memory_given(tmp_path):
    """The process may have 1.5 GB, and without a cache does not get through."""
    folder = tmp_path / "sst2"
    folder.mkdir()
    with (folder / "train.jsonl").open("w") as file:
        for i in range(_MANY):
            line = f'{{"sentence": "film number {i} was {i * 7919}", '
            file.write(line + f'"label": {i % 2}, "unused": "{"x" * 1500}"}}\n')
    (folder / "dev.jsonl").write_text('{"sentence": "good", "label": 1}\n' * 9)
    size = (folder / "train.jsonl").stat().st_size
    limit = 1.5
    assert size > 0.75 * limit * 2**30
    without = _run(str(tmp_path), "", limit)
    assert without.returncode != 0
    through = _run(str(tmp_path), str(tmp_path / "cache"), limit)
    assert through.returncode == 0, through.stderr[-2000:]
    assert Path(tmp_path / "run" / "result.json").exists()
