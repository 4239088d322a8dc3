"""The live server with adapters of other libraries, and from the Hub."""

import shutil

import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file

from tests import commands
from tests import disk_in_memory
from tests.interop import folders
from tests.interop import hub_double
from tests.serving import live
from tests.serving import served
import tf_adapters

# A disk in memory, where there is room for one adapter of the Hub.
_SCRIPT = """
mount -t tmpfs -o size=96k none "$HF_HOME" || exit 3
exec "$@"
"""
_PEFT, _ADAPTERHUB = "peft/bert_lora", "adapterhub/bert_pfeiffer"
_TEXTS = ["the film is good"]


pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    disk_in_memory.needed,
]


def _expected(case):
    model = tf_adapters.load(
        folders.FIXTURES / case, encoder=commands.ENCODER_OF_TWO_BLOCKS
    )
    return model.answer(_TEXTS)[0]


def _files(case):
    return {
        path.name: path.read_bytes()
        for path in (folders.FIXTURES / case).iterdir()
    }


def _write_adapters(folder):
    """Writes adapters that can be served, and some that cannot."""
    for case in (_PEFT, _ADAPTERHUB):
        shutil.copytree(folders.FIXTURES / case, folder / case.split("/")[0])
    shutil.copytree(folders.FIXTURES / _PEFT, folder / "narrow")
    weights = folder / "narrow" / "adapter_model.safetensors"
    cut = {name: x[..., :-1].copy() for name, x in load_file(weights).items()}
    save_file(cut, weights)
    served.write_adapters(folder, ["films"])  # Of another encoder.
    (folder / "damaged").mkdir()
    (folder / "damaged" / "adapter_config.json").write_text("{")


@pytest.fixture(scope="module")
def hub():
    files = _files(_ADAPTERHUB)
    large = {**files, "adapter_model.bin": bytes(200_000)}
    with hub_double.serve({"me/small": files, "me/large": large}) as hub:
        yield hub


@pytest.fixture(scope="module")
def server(tmp_path_factory, hub):
    folder = tmp_path_factory.mktemp("runs")
    _write_adapters(folder)
    server = live.Server(
        *(str(folder), f"--encoder={commands.ENCODER_OF_TWO_BLOCKS}"),
        "--allow_sources=hf://me",
        before=[*disk_in_memory.MAY_MOUNT, "sh", "-c", _SCRIPT, "sh"],
        env={
            "HF_ENDPOINT": hub.address,
            "HF_HOME": str(tmp_path_factory.mktemp("hub")),
        },
    )
    server.wait()
    yield server
    server.process.kill()
    server.process.wait()


@pytest.mark.parametrize("case", [_PEFT, _ADAPTERHUB])
def test_adapters_of_other_libraries_answer_as_alone(server, case):
    response = server.predict(case.split("/")[0], _TEXTS)
    assert live.is_own(response, _expected(case))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("narrow", "shape"),
        ("films", "fingerprint"),
        ("damaged", "adapter_config.json"),
    ],
)
def test_what_does_not_fit_is_refused(server, name, message):
    status, content = server.predict(name, _TEXTS)
    assert status == 409
    assert message in content["error"]


def test_an_adapter_of_the_hub_is_loaded_unless_the_disk_is_full(server, hub):
    def load(name):
        path = f"/v2/repository/models/{name}/load"
        source = f"hf://me/{name}"
        return server.ask(path, {"parameters": {"source": source}})

    wanted = _expected(_ADAPTERHUB)
    assert load("small")[0] == 200
    assert live.is_own(server.predict("small", _TEXTS), wanted)
    status, content = load("large")
    assert status == 503
    assert "No space left" in content["error"]
    assert server.predict("large", _TEXTS)[0] == 404
    assert live.is_own(server.predict("small", _TEXTS), wanted)
    # Without a network, the cached copy is loaded.
    hub.shutdown()
    hub.server_close()
    assert load("small")[0] == 200
    assert live.is_own(server.predict("small", _TEXTS), wanted)
