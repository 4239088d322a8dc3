"""The picture of the folders is that of the imports."""

from tests.lint import floors


def test_contributing_has_the_picture():
    """`python -m tests.lint.floors` makes it."""
    text = floors.DOCUMENT.read_text(encoding="utf-8")
    assert floors.updated(text, floors.picture(floors.imports())) == text


def test_floors_and_arrows_of_three_folders(tmp_path):
    package = tmp_path / "some"
    for folder, text in {
        "top": "from some.middle import x\nimport some.low",
        "middle": "def f():\n    from some import low",
        "low": "import json",
    }.items():
        (package / folder).mkdir(parents=True)
        (package / folder / "__init__.py").write_text(text)
    imported = floors.imports(package)
    assert floors.floors(imported) == [["top"], ["middle"], ["low"]]
    # That `top` imports `low` too is left out.
    assert set(floors.arrows(imported)) == {
        ("top", "middle"),
        ("middle", "low"),
    }
