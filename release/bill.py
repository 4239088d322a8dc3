"""A bill of materials of an installation, in CycloneDX's JSON.

    python -m release.bill dist/tf_adapters.cdx.json

It lists the packages of `requirements.lock`, and as optional those of
`requirements-server.lock`, with version, license, package URL and the SHA-256
of each file. The format is CycloneDX 1.6, which scanners for vulnerabilities
and licenses read. The file has no time and no random number, so the same lock
files give the same bill.
"""

import json
from pathlib import Path
import re
import sys
import uuid

from release import licenses
from release import lock
import tf_adapters

_SPDX_EXPRESSION = re.compile(
    r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*"
)


def component(one: lock.Locked, scope: str) -> dict:
    """Returns the entry of a package.

    Args:
        one: The package.
        scope: `"required"` or `"optional"`.
    """
    purl = f"pkg:pypi/{one.name}@{one.version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": one.name,
        "version": one.version,
        "purl": purl,
        "scope": scope,
        "licenses": _licenses(one.name),
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{one.name}/{one.version}/",
                "hashes": [
                    {"alg": "SHA-256", "content": value} for value in one.hashes
                ],
            }
        ],
    }


def _licenses(name: str) -> list[dict]:
    """Returns a package's license: an SPDX expression, or a name."""
    found = licenses.license_by_name(name)
    is_spdx = _SPDX_EXPRESSION.fullmatch(
        found.replace("(", "").replace(")", "")
    )
    if is_spdx:
        return [{"expression": found}]
    return [{"license": {"name": found}}]


def bill(packages: list[lock.Locked], optional: list[lock.Locked]) -> dict:
    """Returns the bill of materials as a dict.

    Args:
        packages: What each installation has.
        optional: What some installations have besides.
    """
    version = tf_adapters.__version__
    own = f"pkg:pypi/tf-adapters@{version}"
    components = [component(one, "required") for one in packages]
    components += [component(one, "optional") for one in optional]
    content = json.dumps(components, sort_keys=True)
    serial = uuid.uuid5(uuid.NAMESPACE_URL, own + content)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "tf-adapters",
                "version": version,
                "purl": own,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": components,
        "dependencies": [
            {"ref": own, "dependsOn": [one["bom-ref"] for one in components]}
        ],
    }


def write_bill(path: Path) -> None:
    """Writes the bill of materials of the lock file to a path."""
    packages, optional = (
        lock.read_lock(file.read_text(encoding="utf-8"))
        for file in (lock.LOCK, lock.SERVER_LOCK)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(bill(packages, optional), indent=1) + "\n"
    path.write_text(text, encoding="utf-8")
    print(f"{len(packages)} packages, {len(optional)} optional, in {path}")


if __name__ == "__main__":
    write_bill(Path(sys.argv[1]))
