"""The schemas that Codex prints of its app-server -> one file of types that the tests read.

``python -m tests.servers.codex_schema`` asks the installed Codex and writes the file anew.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from tests.servers.codex_process import codex_program

Json = dict[str, Any]

FIXTURE = Path(__file__).parent.parent / "fixtures" / "codex_app_server_protocol.json"
# Words for people; without them a type has one and the same schema wherever it is mentioned.
_WORDS = frozenset({"$schema", "description", "title"})


class CodexSchema(NamedTuple):
    """What one release of Codex says about its messages."""

    release: str
    files: list[str]
    types: Json
    # What differs without the experimental members; None if the type itself is experimental.
    stable: Json

    def schema(self, name: str, *, stable: bool = False) -> Json:
        """The schema of a type, with what it may refer to."""
        types = {**self.types, **self.stable} if stable else self.types
        return {**types[name], "definitions": types}


def recorded() -> CodexSchema:
    """What the release in the file has printed."""
    return CodexSchema(**json.loads(FIXTURE.read_text(encoding="utf-8")))


def printed() -> CodexSchema:
    """What the installed Codex prints."""
    with tempfile.TemporaryDirectory() as folder:

        def run(*words: str) -> str:
            env = {"HOME": folder, "CODEX_HOME": folder}
            command = [codex_program(), *words]
            done = subprocess.run(command, check=True, env=env, timeout=120, stdout=subprocess.PIPE)
            return done.stdout.decode()

        whole, stable = Path(folder, "whole"), Path(folder, "stable")
        generate = ("app-server", "generate-json-schema", "--out")
        run(*generate, str(whole), "--experimental")
        run(*generate, str(stable))
        types, stable_types = _types(whole), _types(stable)
        return CodexSchema(
            release=run("--version").split()[-1],
            files=sorted(path.relative_to(whole).as_posix() for path in whole.rglob("*.json")),
            types=types,
            stable={n: stable_types.get(n) for n in types if types[n] != stable_types.get(n)},
        )


def _types(folder: Path) -> Json:
    types: Json = {}
    for path in sorted(folder.rglob("*.json")):
        if path.name.endswith(".schemas.json"):  # all the others again, in one file
            continue
        schema = _without_words(json.loads(path.read_text(encoding="utf-8")))
        for name, one in {**schema.pop("definitions", {}), path.stem: schema}.items():
            assert types.setdefault(name, one) == one, f"{name} has two meanings"
    return dict(sorted(types.items()))


def _without_words(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_words(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without_words(value)
        for key, value in node.items()
        if not (key in _WORDS and isinstance(value, str))
    }


def write(schema: CodexSchema) -> None:
    """Write the file, a type to a line, so that a change of Codex reads well."""
    FIXTURE.write_text(_lines(schema._asdict(), depth=2) + "\n", encoding="utf-8")


def _lines(value: Any, *, depth: int) -> str:
    if not (depth and isinstance(value, dict)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    members = (f"{json.dumps(name)}:{_lines(v, depth=depth - 1)}" for name, v in value.items())
    return "{\n" + ",\n".join(members) + "\n}"


if __name__ == "__main__":
    write(printed())
