"""The options of `tf-adapters serve`, without a server."""

import contextlib
import os
import types

import pytest

from tf_adapters.cli import serve
from tf_adapters.common.errors import ConfigError
from tf_adapters.serving import sources


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command, and returns the `Settings` of its server."""
    pytest.importorskip("ray")
    from tf_adapters.serving import server

    found = []

    @contextlib.contextmanager
    def running(settings, sources):
        found.append(settings)
        yield

    monkeypatch.setattr(server, "running", running)
    monkeypatch.setattr(server, "wait_for_end", lambda: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()

    def run(encoder="minilm", **given):
        options = {flag.name: flag.default for flag in serve.COMMAND.own_flags}
        options |= {"plugin": [], "verbose": False, "at_first_use": True}
        layer = {"encoder": encoder, "train": {}}
        options = types.SimpleNamespace(**(options | given))
        serve.run_serve(options, layer, ["runs"])
        return found[-1]

    return run


def test_paths_are_absolute_and_names_stay(run, tmp_path):
    for name in ("minilm", "mine"):
        (tmp_path / name).mkdir()
    sources = ["later", "hf://owner", ""]
    settings = run(allow_sources=sources)
    assert settings.places == (str(tmp_path / "runs"),)
    # The folder may be made later.
    wanted = (str(tmp_path / "later"), "hf://owner", "")
    assert settings.allow_sources == wanted
    assert settings.encoder == "minilm"
    assert run(encoder="mine").encoder == str(tmp_path / "mine")
    assert run(encoder="bert_tiny_en_uncased").encoder == "bert_tiny_en_uncased"


def test_the_first_line_counts_the_adapters(run, monkeypatch, capsys):
    for number, words in enumerate(("0 adapters", "1 adapter", "2 adapters")):
        found = {f"a{place}": place for place in range(number)}
        monkeypatch.setattr(sources, "find_adapters", lambda _, f=found: f)
        run()
        assert f"Serving {words} on minilm:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value"),
    [("host", ""), ("timeout", 0.0), ("timeout", float("nan"))],
)
def test_values_that_cannot_be_served_are_refused(run, option, value):
    with pytest.raises(ConfigError, match=f"--{option}"):
        run(**{option: value})


def test_a_log_that_cannot_be_opened_is_refused(run):
    assert run(log_file="runs/log").log_file.endswith("runs/log")
    with pytest.raises(ConfigError, match=r"--log_file=none/log: No such"):
        run(log_file="none/log")


@pytest.mark.parametrize("token", ["gehéim", " s3cret", "a\nb"])
def test_a_token_that_no_client_can_send_is_refused(run, monkeypatch, token):
    monkeypatch.setitem(os.environ, "TF_ADAPTERS_SERVER_TOKEN", token)
    with pytest.raises(ConfigError, match="TF_ADAPTERS_SERVER_TOKEN") as caught:
        run()
    assert token not in str(caught.value)


def test_a_body_may_have_one_text_of_all_characters(run):
    assert run().limits.body_bytes == 8_000_000
    assert run(max_characters=3_000_000).limits.body_bytes == 36_000_000
