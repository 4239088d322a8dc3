"""The help of the command is grouped, short, and names what is there."""

import pytest

from tf_adapters.cli import flags
from tf_adapters.cli import help_text
from tf_adapters.cli import shared_flags


def _help(name, capsys, *more):
    with pytest.raises(SystemExit) as caught:
        flags.parse(flags.load_command(name), [*more, "--help"])
    assert not caught.value.code
    return capsys.readouterr().out


def test_each_flag_without_a_subcommand_is_in_one_group():
    shared = flags.flags.FLAGS.flags_by_module_dict()[flags.__name__]
    grouped = [name for names in shared_flags.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(flag.name for flag in shared)


def test_the_overview_names_each_command_and_flag():
    commands = [flags.load_command(name) for name in shared_flags.COMMANDS]
    text = help_text.overview(commands, shared_flags.GROUPS, flags.flags.FLAGS)
    assert all(f"\n  {name} " in text for name in shared_flags.COMMANDS)
    for names in shared_flags.GROUPS.values():
        assert all(f"--{name}" in text for name in names)
    assert text.index("What:") < text.index("Data:") < text.index("Training:")
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", shared_flags.COMMANDS)
def test_the_help_of_a_subcommand(name, capsys):
    text = _help(name, capsys)
    command = flags.load_command(name)
    assert f"Usage: tf-adapters {name} " in text
    assert f"  tf-adapters {name} " in text
    assert all(f"--{flag}" in text for flag in command.flag_names)
    lines = text.splitlines()
    assert len(lines) < 80 and max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", ["analyse", "analyze"])
def test_analyses_have_two_spellings(name, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["tf-adapters", name, "--help"])
    # It would last for all tests of this process.
    monkeypatch.setattr(flags.garbage, "collect_less", lambda: None)
    with pytest.raises(SystemExit) as caught:
        flags.run()
    assert not caught.value.code
    assert "similarity" in capsys.readouterr().out


def test_help_says_the_defaults(capsys):
    text = " ".join(_help("train", capsys).split())
    assert "Default: minilm" in text and "Default: houlsby" in text
    assert "more if that is under 200 steps" in text


def test_a_misspelt_flag_is_one_sentence():
    with pytest.raises(SystemExit) as caught:
        flags.parse(flags.load_command("train"), ["--epoch=3"])
    assert "Did you mean: epochs" in str(caught.value)


def test_a_text_that_looks_like_a_flag_has_a_hint():
    command = flags.load_command("predict")
    with pytest.raises(SystemExit) as caught:
        flags.parse(command, ["run", "- a fine film"])
    assert "begins with a dash comes after `--`" in str(caught.value)
    *_, rest = flags.parse(command, ["run", "--", "- a fine film"])
    assert rest == ["run", "- a fine film"]


def test_flags_of_a_subcommand_are_its_own():
    command = flags.load_command("train")
    _, layer, rest = flags.parse(
        command, ["--text=a,b", "more", "--seed=3", "--data=x.csv"]
    )
    data = {"text": ["a", "b"], "file": "x.csv"}
    assert layer == {"data": data, "train": {}, "seed": 3}
    assert rest == ["more"]
    assert flags.parse(command, [])[1] == {"data": {}, "train": {}}
    assert flags.flags.FLAGS["seed"].value is None
