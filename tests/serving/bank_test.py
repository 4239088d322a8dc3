"""The adapters in the server's memory, without its forward pass."""

import concurrent.futures
import contextlib
import errno
import shutil

import pytest

from tests.serving import served
from tests.stored import change_config
import tf_adapters
from tf_adapters import heads
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import ConfigError
from tf_adapters.interop import hub
from tf_adapters.interop.hub import HubError
from tf_adapters.models import bank_storage
from tf_adapters.serving import engine
from tf_adapters.serving.adapter_bank import AdapterBank
from tf_adapters.serving.failures import loading_failed
from tf_adapters.serving.reading import reading_of

pytestmark = pytest.mark.integration

_NAMES = ("films", "stars")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return served.write_adapters(tmp_path_factory.mktemp("runs"), _NAMES)


def _bank(capacity):
    encoder, _ = tf_adapters.load_encoder(served.ENCODER)
    return AdapterBank(encoder, capacity)


def _set(folder, **details):
    def change(config):
        config["details"].update(details)

    change_config(folder / "adapter", change)


def test_a_run_that_has_not_finished_is_not_loaded(folder, tmp_path):
    run = tmp_path / "films"
    shutil.copytree(folder / "films", run)
    for name in ("config.yaml", "metrics.jsonl"):
        (run / name).write_text("task: sst2\nmethod: pfeiffer\n")
    bank = _bank(capacity=1)
    with pytest.raises(ConfigError, match="has not finished"):
        bank.load("films", str(run))
    assert bank.load("films", str(run / "adapter"))["method"] == "pfeiffer"


def test_an_adapter_that_was_removed_is_read_again(folder, tmp_path):
    changed = tmp_path / "films"
    shutil.copytree(folder / "films", changed)
    bank = _bank(capacity=1)
    bank.load("changed", str(changed))
    bank.load("stars", str(folder / "stars"))
    _set(changed, max_length=9)
    change_config(
        changed / "adapter", lambda config: config["head"]["labels"].reverse()
    )
    assert bank.load("changed", str(changed))["labels"] == ["good", "bad"]
    assert bank.reading("changed").head.labels == ("good", "bad")
    assert bank.reading("changed").max_length == 9


def test_there_is_room_for_more_than_the_first_adapters(folder, monkeypatch):
    monkeypatch.setattr(engine, "_SPARE", 2)
    server = served.make_engine()
    places = {f"films{i}": str(folder / "films") for i in range(4)}
    server.load_first(places)
    server.prepare()
    made = server.adapters.bank.generation
    for name in ("fifth", "sixth"):
        server.load(name, str(folder / "films"))
    # So requests still use the graph that `prepare` made.
    assert server.adapters.bank.generation == made


def test_a_load_that_fails_removes_nobody(folder, tmp_path):
    shutil.copytree(folder / "films", tmp_path / "films")
    _set(tmp_path / "films", max_length=2)
    bank = _bank(capacity=2)
    for name in _NAMES:
        bank.load(name, str(folder / name))
    for _ in range(2):
        with pytest.raises(AdapterError, match="`max_length`"):
            bank.load("bad", str(tmp_path / "films"))
    assert bank.bank.names == list(_NAMES)


def test_adapters_of_a_batch_stay_while_others_load(folder, monkeypatch):
    bank = _bank(capacity=1)
    sources = {name: str(folder / name) for name in _NAMES}
    bank.load("films", sources["films"])
    using = bank.bank.using

    with concurrent.futures.ThreadPoolExecutor(1) as threads:

        def disturbed(keys):
            if len(keys) == 2:  # Just before a batch gets its adapters.
                load = threads.submit(bank.load, "stars", sources["stars"])
                concurrent.futures.wait([load], timeout=0.5)
            return using(keys)

        monkeypatch.setattr(bank.bank, "using", disturbed)
        with bank.using(["films"] * 2, sources) as used:
            assert [member.name for member in used.members] == ["films"] * 2


@pytest.mark.parametrize(
    "details",
    [
        *({"max_length": n} for n in (1, 3, -5, 2.5, True, "x")),
        *({"text_fields": names} for names in ("abc", ["a", 1], [["x"]], 5)),
    ],
)
def test_wrong_details_are_refused(tmp_path, details):
    head = heads.Classification(("bad", "good"))
    (name,) = details
    with pytest.raises(AdapterError, match=f"`{name}`.*Received"):
        reading_of(head, tmp_path, details, longest=None)


def _error(number):
    error = AdapterError("a.json cannot be read.")
    error.__cause__ = OSError(number, "an error")
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (_error(errno.EIO), 503),
        (_error(errno.ENOENT), 409),
        (HubError("It does not answer."), 503),
        (AdapterError("The shape is wrong."), 409),
        (TypeError("an error"), 409),
    ],
)
def test_errors_of_disk_and_network_may_pass(error, status):
    assert loading_failed(error).status == status


class ResourceExhaustedError(Exception):
    """Has the name of TensorFlow's error, whose class is not imported."""


@pytest.mark.parametrize("kind", [MemoryError, ResourceExhaustedError])
def test_too_little_memory_may_pass(kind):
    assert loading_failed(kind("an error")).status == 503
    error = AdapterError("The bank cannot grow.")
    error.__cause__ = kind("an error")
    assert loading_failed(error).status == 503


def test_a_bank_that_is_in_use_may_have_room_later(folder, monkeypatch):
    monkeypatch.setattr(bank_storage, "_TIMEOUT", 0.01)
    bank, source = _bank(capacity=1), str(folder / "films")
    with (
        contextlib.ExitStack() as requests,
        pytest.raises(AdapterError) as caught,
    ):
        # It has a few more places than adapters.
        for key in "abcd":
            bank.load(key, source)
            requests.enter_context(bank.using([key], {key: source}))
    assert loading_failed(caught.value).status == 503
    assert bank.load("d", source)["method"] == "pfeiffer"


def test_an_adapter_of_the_hub_comes_back_as_it_was(folder, monkeypatch):
    address, pulled = "hf://owner/films", []

    def pull(source):
        pulled.append(source)
        return folder / "films"

    monkeypatch.setattr(hub, "pull", pull)
    monkeypatch.setattr(hub, "find_cached", lambda _: folder / "films")
    bank = _bank(capacity=1)
    bank.load("films", address)
    bank.load("stars", str(folder / "stars"))  # Takes its place.
    bank.load("films", address)
    assert pulled == [address]
    bank.forget("films")
    bank.load("films", address)  # A client has asked for it again.
    assert pulled == [address] * 2


def test_a_write_that_fails_leaves_room_for_others(folder, monkeypatch):
    bank = _bank(capacity=2)
    bank.load("films", str(folder / "films"))

    def fail(*_):
        raise MemoryError

    free = []
    for _ in range(3):
        with monkeypatch.context() as patch, pytest.raises(MemoryError):
            patch.setattr(type(bank.bank.core), "write", fail)
            bank.load("stars", str(folder / "stars"))
        free.append([len(rows) for rows in bank.bank._rows._free.values()])
    assert free[0] == free[1] == free[2]
    bank.load("stars", str(folder / "stars"))
