"""Reading profiles: YAML 1.2 with line marks, and every problem at once.

Three look at the same tree, and none stops the others: YAML itself (duplicate keys), the schema (pydantic), and the
sense of it (`check`). A problem reads `NAME.yaml:LINE: path.to.key: what is wrong; allowed here: ...`.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from loadbench.media.form import (
    WHOLE,
    AudioForm,
    Encoder,
    FileForm,
    FrameForm,
    H264Form,
    LandmarksForm,
    MediaForm,
    PluginForm,
    RecordingForm,
    SliceForm,
)
from loadbench.session import check
from loadbench.session.check import Place, Problem
from loadbench.session.landmarks import members
from loadbench.session.plugin import Key
from loadbench.session.profile import EndStep, Medium, Profile, keys

MOST_BYTES: Final = 4 * 1024 * 1024
MOST_NODES: Final = 100_000  # with every alias written out: some lines of aliases of aliases can mean billions
MOST_LEVELS: Final = 64
PROFILES: Final = Path(__file__).parent.parent / "data" / "profiles"
Line = Callable[[Place], int]
NO_ENCODERS: Final[Mapping[Key, Encoder]] = MappingProxyType({})


class ProfileError(ValueError):
    """A profile that cannot be used. `problems` holds all that is wrong with it, one sentence each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def shipped() -> dict[str, Path]:
    """The profiles that come with the program, by name."""
    return {path.stem: path for path in sorted(PROFILES.glob("*.yaml"))}


def load_profile(name_or_path: str) -> Profile:
    """A shipped profile by its name, or one of your own by its path. Raises ProfileError."""
    return load_text(*source(name_or_path))


def source(name_or_path: str) -> tuple[str, str]:
    """The text of a profile, and the name of its file for messages; the text is not judged. Raises ProfileError."""
    path = shipped().get(name_or_path)
    if path is None:
        path = Path(name_or_path)
        if "/" not in name_or_path and path.suffix not in (".yaml", ".yml"):
            near = _nearest(name_or_path, shipped())
            raise ProfileError([f"no profile is called {name_or_path}{near}; shipped: {', '.join(shipped())}"])
    try:
        with path.open("rb") as file:  # it may be a device that never ends
            text = file.read(MOST_BYTES + 1).decode("utf-8-sig")
    except OSError as error:
        raise ProfileError([f"{path}: cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ProfileError([f"{path}: is not UTF-8 (byte {error.start})"]) from error
    if len(text) > MOST_BYTES // 4:
        raise ProfileError([f"{path}: far too long for a profile"])
    return text, path.name


def lines(text: str) -> Line:
    """Where things stand in the text of a good profile: the line, from 1, of a place, or of the nearest around it."""
    marks, _ = _parse(text, "profile")
    return marks.line


def tree(text: str) -> Any:
    """What a good profile says by itself, without defaults."""
    return _parse(text, "profile")[1]


@lru_cache(maxsize=128)  # a search asks for its profile at each level, and a profile is frozen
def load_text(text: str, source: str) -> Profile:
    """A profile from its text; `source` names it in messages. An end script without a done step gets the usual one.

    Raises ProfileError with all problems, in the order of their lines.
    """
    return load_marked(text, source)[0]


def load_marked(text: str, source: str) -> tuple[Profile, Line]:
    """As `load_text`, and where things stand in it, as `lines` tells: a long profile takes its time to be parsed."""
    marks, tree = _parse(text, source)
    profile, found = _validated(tree)
    found += check.problems(tree)
    if profile is None or found or marks.duplicates:
        lines = sorted({*marks.duplicates, *((marks.line(problem.place), _sentence(problem)) for problem in found)})
        raise ProfileError([f"{source}:{line}: {sentence}" for line, sentence in lines])
    return _with_done(profile), marks.line


def media_form(part: Medium, encoders: Mapping[Key, Encoder] = NO_ENCODERS) -> MediaForm:
    """What the profile wants of a medium. A chunk is a whole number of samples, at least one.

    `encoders` has the plug-in that it may name: KeyError where it has not.
    """
    if part.encoder is not None:
        name, options = part.encoder.key
        return PluginForm(name, str(encoders[part.encoder.key].version), options, part.kind)
    if part.kind == "audio":
        sound = _sound(part)
        return RecordingForm(part.container, sound) if part.container in ("webm", "ogg", "wav") else sound
    if part.kind == "landmarks":
        return LandmarksForm(members(part.message), part.batch, _fps(part))
    return _picture_form(part)


def _fps(part: Medium) -> Fraction | None:
    return None if part.fps == "clip" else Fraction(str(part.fps))


def _sound(part: Medium) -> AudioForm:
    if part.pace == "whole":
        return AudioForm(part.format, part.rate_hz, WHOLE)
    form = AudioForm(part.format, part.rate_hz, 1)
    if part.chunk_bytes is not None:
        samples = part.chunk_bytes // form.sample_bytes
    else:
        samples = round(Fraction(str(part.chunk_ms or 100)) * part.rate_hz / 1000)
    return AudioForm(part.format, part.rate_hz, max(1, samples))


def _picture_form(part: Medium) -> MediaForm:
    size: dict[str, Any] = {"width": part.width, "height": part.height, "fit": part.fit, "fps": _fps(part)}
    rate: dict[str, Any] = {"bitrate_kbps": part.bitrate_kbps, "crf": part.crf}
    rate["keyframe_s"] = Fraction(str(part.keyframe_s))
    if part.kind == "frames" and part.codec != "h264":
        return FrameForm(quality=part.quality, codec=part.codec, **size)
    if part.kind == "frames":
        return H264Form(bframes=part.bframes, **size, **rate)
    if part.container == "file":
        return FileForm()
    slice_s = None if part.slice_ms is None else Fraction(str(part.slice_ms)) / 1000
    container: Any = part.container
    return SliceForm(container=container, slice_s=slice_s, header=part.header, **size, **rate)


def also_form(profile: Profile, encoders: Mapping[Key, Encoder] = NO_ENCODERS) -> MediaForm | None:
    """What the profile wants of the medium beside the first; None where there is none."""
    return None if profile.media.also is None else media_form(profile.media.also, encoders)


def form_encoders(profile: Profile, encoders: Mapping[Key, Encoder]) -> dict[PluginForm, Encoder]:
    """The encoders by the forms that name them."""
    forms = (media_form(profile.media, encoders), also_form(profile, encoders))
    return {form: encoders[form.name, form.options] for form in forms if isinstance(form, PluginForm)}


def secret_names(profile: Profile) -> set[str]:
    """The secrets that its templates ask for."""
    names = check.template_names(profile.model_dump(mode="json", exclude_unset=True))
    return {name.removeprefix("secret.") for name in names if name.startswith("secret.")}


def number_names(profile: Profile) -> set[str]:
    """The fields that it sends as JSON numbers."""
    return check.number_names(profile.model_dump(mode="json", exclude_unset=True))


def _with_done(profile: Profile) -> Profile:
    if any(step.done for step in profile.end):
        return profile
    end = [step for step in profile.end if step.grace_s is None]
    grace = [step for step in profile.end if step.grace_s is not None]
    on = {"on": ["end_of_response", "message"]} if profile.transport.kind == "http" else {}
    done = EndStep.model_validate({"done": on})
    return profile.model_copy(update={"end": [*end, done, *grace]})


# ---- YAML


class _Marks:
    """Where things stand in the file."""

    def __init__(self, root: Node) -> None:
        self.duplicates: list[tuple[int, str]] = []  # the line of the second, and a sentence
        self._lines: dict[Place, int] = {}
        self._seen: set[int] = set()
        self._visit(root, ())

    def line(self, place: Place) -> int:
        """The line, from 1, of what stands at a place, or of the nearest thing around it."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)

    def _visit(self, node: Node, place: Place) -> None:
        self._lines.setdefault(place, node.start_mark.line + 1)
        if id(node) in self._seen:  # an alias: it was read where its anchor stands
            return
        self._seen.add(id(node))
        if isinstance(node, SequenceNode):
            for number, item in enumerate(node.value):
                self._visit(item, (*place, number))
        elif isinstance(node, MappingNode):
            first: dict[str, int] = {}
            for key, value in node.value:
                name = key.value if isinstance(key, ScalarNode) else ""
                line = key.start_mark.line + 1
                if name in first:
                    twice = Problem((*place, name), f"is given twice, in lines {first[name]} and {line}")
                    self.duplicates.append((line, _sentence(twice)))
                first.setdefault(name, line)
                self._lines.setdefault((*place, name), line)
                self._visit(value, (*place, name))


def _parse(text: str, source: str) -> tuple[_Marks, Any]:
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True  # they are reported with all the rest
    try:
        node = yaml.compose(text)
        if node is None:
            raise ProfileError([f"{source}:1: the profile is empty"])
        if wild := _wild(node):
            raise ProfileError([f"{source}:{wild[0].start_mark.line + 1}: {wild[1]}"])
        return _Marks(node), yaml.constructor.construct_document(node)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ProfileError([f"{source}:{line}: is no YAML: {error.problem or error.context}"]) from error
    except (YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, ProfileError):
            raise
        raise ProfileError([f"{source}:1: is no YAML: {' '.join(str(error).split())}"]) from error


def _wild(root: Node) -> tuple[Node, str] | None:
    """The first node that nothing after this could bear, and what is the matter with it; None where all are tame.

    An alias refers to what stands before it, or around it. So each node is measured once, and the recursion goes no
    deeper than the text itself.
    """
    measured: dict[int, tuple[int, int]] = {}  # the nodes and the levels of each, with every alias written out
    around: set[int] = set()

    def measure(node: Node) -> tuple[Node, str] | None:
        if id(node) in around:
            return node, "an alias stands within its own anchor, so that this would never end"
        if id(node) in measured:
            return None
        if isinstance(node, ScalarNode):
            measured[id(node)] = (1, 1)
            whole = not any("\ud800" <= letter <= "\udfff" for letter in node.value)
            return None if whole else (node, "half of a surrogate pair is no letter: write \\U and eight digits")
        pairs = isinstance(node, MappingNode)
        inner: list[Node] = [each for pair in node.value for each in pair] if pairs else node.value
        around.add(id(node))
        for each in inner:
            if wild := measure(each):
                return wild
        around.discard(id(node))
        sizes = [measured[id(each)] for each in inner]
        nodes, levels = 1 + sum(size[0] for size in sizes), 1 + max((size[1] for size in sizes), default=0)
        measured[id(node)] = nodes, levels
        if nodes > MOST_NODES:
            return node, f"with all aliases written out there are more than {MOST_NODES} values"
        return (node, f"nested more than {MOST_LEVELS} levels deep") if levels > MOST_LEVELS else None

    return measure(root)


# ---- the schema's complaints in plain words


def _validated(tree: Any) -> tuple[Profile | None, list[Problem]]:
    if not isinstance(tree, dict):
        return None, [Problem((), "a profile is a mapping of keys to values")]
    try:
        return Profile.model_validate(tree), []
    except ValidationError as errors:
        return None, list(_plain(errors.errors(include_url=False), tree))


def _plain(errors: Iterable[ErrorDetails], tree: Any) -> Iterator[Problem]:
    """One problem a place: the branches of a union complain each for itself."""
    told: dict[Place, list[str]] = {}
    for error in errors:
        place = _place(error, tree)
        words = _WORDS.get(error["type"], _as_it_is)(error, place)
        if words not in told.setdefault(place, []):
            told[place].append(words)
    for place, words_of_place in told.items():
        yield Problem(place, ", or ".join(words_of_place))


def _place(error: ErrorDetails, tree: Any) -> Place:
    """The part of an error's location that is in the file; a union adds its branches to it."""
    place: Place = ()
    for step in error["loc"]:
        in_list = isinstance(tree, list) and isinstance(step, int) and step < len(tree)
        if not in_list and not (isinstance(tree, dict) and step in tree):
            break
        tree = tree[step]
        place = (*place, step if in_list else str(step))
    return (*place, error["loc"][-1]) if error["type"] == "missing" and error["loc"] else place


def _extra(_: ErrorDetails, place: Place) -> str:
    part = check.part_at(place[:-1])
    allowed = sorted(keys(part)) if part else []
    return f"no such key{_nearest(str(place[-1]), allowed)}; allowed here: {', '.join(allowed)}"


def _literal(error: ErrorDetails, _: Place) -> str:
    expected = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
    near = _nearest(str(error["input"]), expected.split(", "))
    return f"{error['input']!r} is not known{near}; allowed here: {expected}"


def _wanted(what: str) -> Callable[[ErrorDetails, Place], str]:
    return lambda error, _: f"must be {what}, not {error['input']!r}"


def _bound(error: ErrorDetails, _: Place) -> str:
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    key = next(key for key in words if key in error["ctx"])
    return f"must be {words[key]} {error['ctx'][key]}, not {error['input']!r}"


def _as_it_is(error: ErrorDetails, _: Place) -> str:
    return error["msg"].removeprefix("Value error, ")


def _key(error: ErrorDetails, _: Place) -> str:
    return f"the key {error['input']!r} is no text: put it in quotes"


_NUMBER: Final = _wanted("a number")
_WHOLE: Final = _wanted("a whole number")
_SWITCH: Final = _wanted("true or false")
_MAPPING: Final = _wanted("a mapping of keys to values")
_WORDS: Final[dict[str, Callable[[ErrorDetails, Place], str]]] = {
    "extra_forbidden": _extra,
    "invalid_key": _key,
    "finite_number": _NUMBER,
    "missing": lambda _error, _place: "is missing",
    "literal_error": _literal,
    "string_type": _wanted("a text"),
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "bool_type": _SWITCH,
    "bool_parsing": _SWITCH,
    "list_type": _wanted("a list"),
    "tuple_type": _wanted("a pair [name, value]"),
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "too_short": lambda _error, _place: "must not be empty",
    "greater_than": _bound,
    "greater_than_equal": _bound,
    "less_than": _bound,
    "less_than_equal": _bound,
}


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _sentence(problem: Problem) -> str:
    path = ""
    for step in problem.place:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return f"{path.removeprefix('.')}: {problem.what}" if path else problem.what
