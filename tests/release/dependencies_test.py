"""The lock file, the table of licenses, and the bill of materials."""

from email.message import Message
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
import pytest

from release import bill
from release import licenses
from release import lock
from release import systems

ROOT = Path(__file__).parents[2]
LOCKED = lock.read_lock(lock.LOCK.read_text(encoding="utf-8"))
OF_SERVER = lock.read_lock(lock.SERVER_LOCK.read_text(encoding="utf-8"))
TEXT = f"""\
# A comment.
one==1.0 \\
    --hash=sha256:{"a" * 64} \\
    --hash=sha256:{"b" * 64}
two-more==2.1 ; sys_platform == 'win32' \\
    --hash=sha256:{"c" * 64}
"""


def test_a_lock_file_is_read_with_conditions_and_all_hashes():
    assert lock.read_lock(TEXT) == [
        lock.Locked("one", "1.0", "", ("a" * 64, "b" * 64)),
        lock.Locked("two-more", "2.1", "sys_platform == 'win32'", ("c" * 64,)),
    ]


def test_the_lock_file_has_each_pin_and_hashes_of_everything():
    text = lock.LOCK.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line[:1].isalnum()]
    assert len(LOCKED) == len(lines) > 100
    assert all(one.hashes for one in LOCKED)
    versions = {one.name: one.version for one in LOCKED}
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line)
            assert pin.specifier.contains(versions[lock.normalized(pin.name)])
    name, _, version = lock.ALONE.partition("==")
    assert versions[name] == version
    assert f"--no-deps {lock.ALONE}" in (ROOT / "Makefile").read_text()


def test_the_server_has_a_lock_file_of_what_it_needs_besides():
    versions = {one.name: one.version for one in OF_SERVER}
    pins = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    assert f"ray[serve]=={versions['ray']}" in pins
    assert {"uvicorn", "starlette", "fastapi"} <= versions.keys()
    assert all(one.hashes for one in OF_SERVER)
    assert not versions.keys() & {one.name for one in LOCKED}
    assert lock.besides(TEXT, lock.read_lock(TEXT)[1:]) == "".join(
        TEXT.splitlines(keepends=True)[1:4]
    )


def _package(*fields):
    package = Message()
    for name, value in fields:
        package[name] = value
    return package


OSI = "License :: OSI Approved"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([("License-Expression", "MIT OR Apache-2.0")], "MIT OR Apache-2.0"),
        ([("Classifier", f"{OSI} :: MIT License")], "MIT"),
        (
            [("Classifier", OSI), ("License", "Apache 2.0")],
            "Apache-2.0",
        ),
        (
            [
                ("Classifier", f"{OSI} :: BSD License"),
                ("License", "BSD 3-Clause"),
            ],
            "BSD-3-Clause",
        ),
        (
            [
                ("Classifier", f"{OSI} :: BSD License"),
                ("License", "Copyright (c) 2001\n\nRedistribution ..."),
            ],
            "BSD License",
        ),
        ([("Classifier", "Topic :: Software Development")], "not declared"),
    ],
)
def test_the_license_that_a_package_declares(fields, expected):
    assert licenses.license_of(_package(*fields)) == expected


def test_the_page_has_each_package_with_the_license_of_its_version():
    text = licenses.DOCUMENT.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[c.strip() for c in row.strip("|").split("|")] for row in rows]
    stated = {
        name: row[0]
        for row in cells
        for name in row[-1].split(", ")
        if len(row) == 3
    }
    checked = 0
    for one in (*LOCKED, *OF_SERVER):
        assert one.name in stated, "run `make lock`"
        try:
            installed = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            continue
        # Other packages of an environment can have moved a version.
        if installed == one.version:
            assert licenses.license_by_name(one.name) == stated[one.name]
            checked += 1
    assert checked > 50
    assert licenses.with_table(text, "| new |\n").count("| new |") == 1


def test_the_bill_of_materials_lists_the_lock_files():
    packages, optional = lock.read_lock(TEXT)[:1], lock.read_lock(TEXT)[1:]
    made = bill.bill(packages, optional)
    assert made == bill.bill(packages, optional)
    assert made["specVersion"] == "1.6"
    first, second = made["components"]
    assert first["purl"] == "pkg:pypi/one@1.0"
    (files,) = first["externalReferences"]
    assert [one["content"] for one in files["hashes"]] == ["a" * 64, "b" * 64]
    assert second["licenses"] == [{"license": {"name": "not installed here"}}]
    (depends,) = made["dependencies"]
    assert depends["dependsOn"] == [first["bom-ref"], second["bom-ref"]]
    assert (first["scope"], second["scope"]) == ("required", "optional")
    changed = bill.bill(packages, [])
    assert changed["serialNumber"] != made["serialNumber"]


def test_the_table_of_systems_is_replaced():
    made = systems.as_table(["3.11", "3.11, 3.12", "", "3.13"])
    text = systems.with_table("before\n\n" + made + "\nafter\n", made)
    assert text == "before\n\n" + made + "\nafter\n"
    assert "| Python | 3.11 | 3.11, 3.12 | none | 3.13 |\n" in made
    new = systems.as_table(["3.11"] * len(systems.SYSTEMS))
    readme = systems.DOCUMENT.read_text(encoding="utf-8")
    assert systems.with_table(readme, new).count(new) == 1
    with pytest.raises(ValueError, match="one table"):
        systems.with_table("no table", made)
