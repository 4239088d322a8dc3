"""Names and places of the adapters of a server."""

import json
import os

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
