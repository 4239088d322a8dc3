"""Names and places of the adapters of a server."""

import json
import os
from pathlib import Path

import pytest

from tf_adapters.common.errors import ConfigError
from tf_adapters.serving.catalog import Catalog
from tf_adapters.serving.common_encoder import encoder_of
from tf_adapters.serving.request_error import RequestError
from tf_adapters.serving.sources import find_adapters
from tf_adapters.serving.sources import is_allowed
from tf_adapters.serving.sources import present_adapters
from tf_adapters.serving.steps import plan_steps


def _write(folder, name="adapter_config.json"):
    folder.mkdir(parents=True)
    (folder / name).write_text("{}")


def test_adapters_are_named_after_run_folders(tmp_path):
    _write(tmp_path / "films" / "adapter")
    _write(tmp_path / "films" / "peft" / "films")  # An export of the run.
    _write(tmp_path / "hub", "adapter_setup.json")
    _write(tmp_path / "many" / "sst2" / "adapter")
    _write(tmp_path / ".part" / "adapter")
    assert find_adapters([str(tmp_path)]) == {
        "films": str(tmp_path / "films"),
        "hub": str(tmp_path / "hub"),
        "many.sst2": str(tmp_path / "many" / "sst2"),
    }
    alone = find_adapters([str(tmp_path / "films" / "adapter")])
    assert list(alone) == ["films"]
    assert find_adapters(["hf://o/n@main"]) == {"n@main": "hf://o/n@main"}
    _write(tmp_path / "other" / "films")
    with pytest.raises(ConfigError, match="Two adapters have the name `films`"):
        find_adapters([str(tmp_path), str(tmp_path / "other")])
    # Adapters that come later are found nevertheless, and so is the first.
    places = [str(tmp_path), str(tmp_path / "gone"), str(tmp_path / "other")]
    found = present_adapters(places)
    assert found["films"] == str(tmp_path / "films")
    assert found.keys() == {"films", "hub", "many.sst2", "other.films"}


def test_a_folder_that_cannot_be_read_hides_no_other(
    tmp_path, monkeypatch, caplog
):
    _write(tmp_path / "films" / "adapter")
    (tmp_path / "closed").mkdir()
    closed, iterdir = [tmp_path / "closed"], Path.iterdir

    def checked(folder):
        if folder in closed:  # Root may read any folder.
            raise PermissionError(13, "Permission denied")
        return iterdir(folder)

    monkeypatch.setattr(Path, "iterdir", checked)
    wanted = {"films": str(tmp_path / "films")}
    assert find_adapters([str(tmp_path)]) == wanted
    assert present_adapters([str(tmp_path)]) == wanted
    (line,) = caplog.messages
    assert "closed is left out: Permission denied." in line
    closed.append(tmp_path)
    with pytest.raises(ConfigError, match="Cannot read .*Permission denied"):
        find_adapters([str(tmp_path)])


def test_names_that_no_reply_can_repeat_are_left_out(tmp_path, caplog):
    _write(tmp_path / "films" / "adapter")
    bad = tmp_path / os.fsdecode(b"r\xe9")
    _write(bad / "adapter")
    assert list(find_adapters([str(tmp_path)])) == ["films"]
    assert "its name is not valid Unicode" in caplog.text
    with pytest.raises(ConfigError, match="is not valid Unicode"):
        find_adapters([str(bad)])


def _write_run(folder, **files):
    """Writes a run folder with an adapter and a log, as in training."""
    _write(folder / "adapter")
    for name in ("config.yaml", "metrics.jsonl"):
        (folder / name).write_text("{}")
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


def test_runs_that_have_not_finished_are_left_out(tmp_path, caplog):
    _write_run(tmp_path / "done", result_json="{}")
    # An earlier version wrote the fusions that it pruned without a result.
    _write_run(tmp_path / "pruned", metrics_jsonl="")
    _write_run(tmp_path / "training")
    _write(tmp_path / "training" / "snapshots" / "100")
    assert list(find_adapters([str(tmp_path)])) == ["done", "pruned"]
    (line,) = caplog.messages
    assert "training is left out: it holds a run that has not" in line
    run = tmp_path / "training"
    with pytest.raises(ConfigError, match="has not finished.*Resume it"):
        find_adapters([str(run)])
    assert present_adapters([str(run)]) == {}
    # Its best weights so far may be asked for.
    assert list(find_adapters([str(run / "adapter")])) == ["training"]


def test_the_encoder_that_tasks_share_is_no_adapter(tmp_path):
    run = tmp_path / "many"
    _write_run(run / "sst2", result_json="{}")
    _write_encoder(run / "encoder", "0" * 16)
    assert list(find_adapters([str(tmp_path)])) == ["many.sst2"]
    assert list(find_adapters([str(run)])) == ["sst2"]
    # An adapter with a head may have this name.
    config = run / "encoder" / "adapter_config.json"
    config.write_text('{"head": {}}')
    assert list(find_adapters([str(run)])) == ["encoder", "sst2"]


def test_only_allowed_sources_are_loaded(tmp_path):
    allowed = [str(tmp_path / "runs"), "hf://owner"]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "secret")
    for source in (str(tmp_path / "runs" / "x"), "hf://owner/n", "hf://owner"):
        assert is_allowed(source, allowed)
    for source in (
        str(tmp_path / "runs" / ".." / "secret"),
        str(tmp_path / "runs" / "link"),
        str(tmp_path / "runs2"),
        "hf://owner2/n",
        "http://owner/n",
        "",
    ):
        assert not is_allowed(source, allowed)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert not is_allowed(str(tmp_path / "circle"), allowed)
    assert not is_allowed(str(tmp_path), [])
    # `--allow_sources=/srv,` has an empty item, which is no folder.
    assert not is_allowed(os.path.abspath("runs"), [str(tmp_path), ""])


def test_a_new_declaration_keeps_what_requests_added():
    catalog = Catalog()
    catalog.declare({"a": "x", "b": "y"})
    catalog.put(catalog.new_offer("c", "z"))
    kept = catalog.get("a")
    removed = catalog.declare({"a": "x", "b": "w"})
    assert [offer.source for offer in removed] == ["y"]
    assert [offer.source for offer in catalog.offers()] == ["x", "w", "z"]
    assert catalog.get("a") == kept
    with pytest.raises(RequestError):
        catalog.get("d")


def test_a_replaced_offer_is_not_changed():
    catalog = Catalog()
    old, new = (catalog.new_offer("a", "x") for _ in range(2))
    catalog.put(old)
    catalog.put(new)
    catalog.replace(old, problem="damaged")
    assert catalog.get("a") == new
    catalog.remove("a")
    catalog.replace(new, problem="damaged")
    assert catalog.find("a") is None


@pytest.mark.parametrize(
    ("lengths", "steps"),
    [
        ([10, 200, 12, 90, 30], [[0, 2, 4], [3], [1]]),
        ([40] * 5, [[0, 1], [2, 3], [4]]),
        ([3, 500], [[0], [1]]),
        ([], []),
    ],
)
def test_steps_are_of_similar_lengths_and_within_the_budget(lengths, steps):
    assert list(plan_steps(lengths, max_tokens=100)) == steps


def _write_encoder(folder, fingerprint, quantization=None):
    encoder = {"name": "bert", "fingerprint": fingerprint}
    if quantization:
        encoder["quantization"] = quantization
    _write(folder)
    config = {
        "format_version": 1,
        "encoder": encoder,
        "method": {"name": "bitfit"},
    }
    config |= {"head": None, "details": {}}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.parametrize("order", [1, -1])
def test_the_encoder_of_adapters_of_which_some_are_damaged(tmp_path, order):
    given = [
        ("a", _write_encoder(tmp_path / "a", "0" * 16, "int8")),
        ("b", _write_encoder(tmp_path / "b", "0" * 16)),
        ("damaged", _write_encoder(tmp_path / "damaged", "0" * 16)),
    ]
    config = tmp_path / "damaged" / "adapter_config.json"
    config.write_text(config.read_text().replace("null", "5"))
    # Adapters of a float encoder load on a quantized one.
    assert encoder_of(dict(given[::order])) == ("bert", "int8")
    assert encoder_of(dict(given[1:])) == ("bert", None)
    given.append(("c", _write_encoder(tmp_path / "c", "0" * 16, "int4")))
    with pytest.raises(ConfigError, match="int4, int8"):
        encoder_of(dict(given[::order]))
    assert encoder_of(dict(given[::order]), "int4") == ("bert", "int4")
