"""A wheel and the locked dependencies -> a CycloneDX document beside the wheel.

``make wheel`` runs it. The same wheel and the same lock files give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = re.compile(r"^([^\s=]+)==(\S+)(?: ; (.*?))? \\\n((?:    --hash.*\n)+)", re.MULTILINE)
# What limner runs with: itself, and each extra.
LOCKED = ("runtime.txt", "extra-*.txt")


def components() -> list[dict[str, Any]]:
    """Every locked package with its licence, its hashes, and the lock files that name it."""
    licences = tomllib.loads((ROOT / "requirements/licences.toml").read_text(encoding="utf-8"))
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(path for part in LOCKED for path in ROOT.glob(f"requirements/{part}")):
        for name, version, marker, hashes in PACKAGE.findall(path.read_text(encoding="utf-8")):
            properties = [{"name": "limner:required-by", "value": path.stem}]
            if marker:
                properties.append({"name": "limner:marker", "value": marker})
            purl = f"pkg:pypi/{name}@{version}"
            made = {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "licenses": [{"expression": licences["packages"][name]}],
                "hashes": [
                    {"alg": "SHA-256", "content": digest}
                    for digest in re.findall(r"sha256:([0-9a-f]{64})", hashes)
                ],
                "properties": [],
            }
            component = found.setdefault((name, version), made)
            component["properties"] += [
                one for one in properties if one not in component["properties"]
            ]
    return [found[key] for key in sorted(found)]


def document(wheel: Path) -> dict[str, Any]:
    """The document about a wheel."""
    name, version = wheel.name.split("-")[:2]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    purl = f"pkg:pypi/{name}@{version}"
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # Not random and without a time: the same wheel has the same document.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{purl}#{digest}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "licenses": [{"expression": "Apache-2.0"}],
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
        },
        "components": components(),
    }


def main() -> None:
    """Write the document of every wheel in the folder."""
    for wheel in sorted(Path(sys.argv[1]).glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        out = wheel.with_name(f"{name}-{version}.cdx.json")
        out.write_text(json.dumps(document(wheel), indent=1) + "\n", encoding="utf-8")
        print(out)


if __name__ == "__main__":
    main()
