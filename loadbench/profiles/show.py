"""What profiles there are, and what stands in one."""

import io
import json
from typing import Any, Final

from pydantic import BaseModel
from ruamel.yaml import YAML

from loadbench.session import check, load
from loadbench.session.profile import Profile

MOST_ROUNDS: Final = 10  # of leaving out what does not apply; what is left out may make another thing senseless
SCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"


def rows() -> list[dict[str, Any]]:
    """The shipped profiles, for programs: name, service, transport, channels with their stages, how checked."""
    found = map(load.load_profile, load.shipped())
    return [
        {
            "name": profile.name,
            "service": profile.about,
            "transport": profile.transport.kind,
            "channels": {name: part.stage for name, part in profile.channels.items()},
            "checked": profile.checked,
        }
        for profile in found
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """The same for people."""
    width = max(len(row["name"]) for row in rows)
    lines = []
    for row in rows:
        channels = ", ".join(f"{name} ({stage})" for name, stage in row["channels"].items())
        lines += [
            f"{row['name']:{width}}  {row['service']}",
            f"{'':{width}}  {row['transport']}; {channels}",
            f"{'':{width}}  checked: {row['checked'] or 'not said'}",
        ]
    return "\n".join(lines)


def schema() -> str:
    """The profile language as a JSON Schema."""
    return json.dumps({"$schema": SCHEMA} | Profile.model_json_schema(), indent=2, ensure_ascii=False)


def resolved(text: str, name: str) -> str:
    """A profile as it takes effect, defaults included, as YAML that is a profile again. Raises ProfileError.

    What does not apply to it (the JPEG quality of audio, the keys of another text model) is left out.
    """
    full, said = _full(load.load_text(text, name)), load.tree(text)
    for _ in range(MOST_ROUNDS):
        senseless = [problem.place for problem in check.problems(full) if not _at(said, problem.place)[0]]
        if not senseless:
            break
        for place in senseless:
            _leave_out(full, place)
    stream = io.StringIO()
    yaml = YAML(typ="rt")
    yaml.width, yaml.default_flow_style = 120, False
    yaml.dump(full, stream)
    return stream.getvalue()


def _full(value: Any) -> Any:
    """With its defaults, as far as they say something. A part of which one key excludes another stays as it is."""
    if isinstance(value, BaseModel):
        choosy = bool(type(value).__pydantic_decorators__.model_validators)
        given = {}
        for name, field in type(value).model_fields.items():
            item = getattr(value, name)
            if name in value.model_fields_set or not (choosy or item in (None, {}, [])):
                given[field.alias or name] = _full(item)
        return given
    if isinstance(value, dict):
        return {key: _full(item) for key, item in value.items()}
    return [_full(item) for item in value] if isinstance(value, list | tuple) else value


def _at(tree: Any, place: check.Place) -> tuple[bool, Any]:
    """Whether there is anything at a place, and what."""
    for step in place:
        inside = isinstance(tree, dict) and step in tree
        if not inside and not (isinstance(tree, list) and isinstance(step, int) and step < len(tree)):
            return False, None
        tree = tree[step]
    return True, tree


def _leave_out(tree: Any, place: check.Place) -> None:
    there, around = _at(tree, place[:-1])
    if there and isinstance(around, dict):
        around.pop(place[-1], None)
