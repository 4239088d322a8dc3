"""The licenses of all dependencies, for the table in docs/security.md.

    python -m release.licenses

writes it, from the packages of the lock files as they are installed. The
license is the one that a package declares: an SPDX expression if it has one,
otherwise its classifiers, otherwise the field `License`.
"""

from importlib import metadata
from pathlib import Path

from release import lock

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "security.md"
_BEGIN = "<!-- licenses: made by release/licenses.py. -->\n"
_END = "<!-- Until here. -->\n"
# Old names of licenses, and their SPDX identifiers.
_SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "ISC License (ISCL)": "ISC",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "Python Software Foundation License": "PSF-2.0",
}


def license_of(package: metadata.PackageMetadata) -> str:
    """Returns the license that a package declares, or "not declared"."""
    expression = package.get("License-Expression")
    if expression:
        return expression
    prefix = "License :: "
    classifiers = [
        one.rpartition(" :: ")[2]
        for one in package.get_all("Classifier") or ()
        if one.startswith(prefix) and not one.endswith("OSI Approved")
    ]
    # Some packages put the whole text of the license into the field.
    field = (package.get("License") or "").strip().partition("\n")[0].strip()
    if field in _SPDX or not classifiers:
        classifiers = [field] if field else []
    names = [_SPDX.get(one, one) for one in classifiers]
    return " AND ".join(dict.fromkeys(names)) or "not declared"


def by_license() -> dict[str, list[str]]:
    """Returns a dict from each license to the names of its packages.

    Packages that other systems need and that are not installed here are under
    "not installed here".
    """
    found = {}
    names = {
        one.name
        for path in (lock.LOCK, lock.SERVER_LOCK)
        for one in lock.read_lock(path.read_text(encoding="utf-8"))
    }
    for name in sorted(names):
        found.setdefault(license_by_name(name), []).append(name)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def license_by_name(name: str) -> str:
    """Returns the license of a package, or "not installed here"."""
    try:
        return license_of(metadata.metadata(name))
    except metadata.PackageNotFoundError:
        return "not installed here"


def table() -> str:
    """Returns the table in Markdown: each license with its packages."""
    lines = ["| license | number | packages |", "|---|---|---|"]
    lines += [
        f"| {name} | {len(packages)} | {', '.join(packages)} |"
        for name, packages in by_license().items()
    ]
    return "\n".join(lines) + "\n"


def with_table(text: str, made: str) -> str:
    """Returns a document in which the table is replaced.

    Args:
        text: The document, with a line before and after the table.
        made: The new table.
    """
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{made}\n{_END}{after}"


def main() -> None:
    """Writes the table into the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(with_table(text, table()), encoding="utf-8")


if __name__ == "__main__":
    main()
