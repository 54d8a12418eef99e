"""The outputs of a run as SimulEval and OmniSTEval read them, so that others can score the same times by other means.

A folder for each channel and unit, `transcript-word`. In it for SimulEval 1.1.4 `instances.log`; for OmniSTEval 0.1.10
`hypotheses.jsonl` and `references.txt`, and in `transcript-word-long`, where recordings have sentences, `segments.json`
as well. Units are words (glosses too) or characters; times are milliseconds from media zero.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from loadbench.analysis.lagging import Emitted, emitted, text_channels
from loadbench.results.bundle import Bundle, BundleError, why, write_whole
from loadbench.results.record import ClipFacts
from loadbench.results.reference import sentences, tokens

_UNSAFE: Final = re.compile(r"[^\w-]")

Files = Mapping[Path, list[bytes]]


def simuleval(bundle: Bundle, folder: Path) -> list[str]:
    """Write the logs; a sentence for each, and one for those that are in none. Raises BundleError where it cannot."""
    files, left = defaultdict[Path, list[bytes]](list), Counter[str]()
    for name, source, found, _ in _outputs(bundle, left):
        path = folder / name / "instances.log"
        row = {"index": len(files[path]), "prediction_length": len(found.units.texts), **_row(source, found)}
        files[path].append(_line(row | {"source": [source]}))
    return [*_written(files), *_left(left)]


def omnisteval(bundle: Bundle, folder: Path) -> list[str]:
    """As `simuleval`. What the clip has sentences of is in the long form only."""
    files, left = defaultdict[Path, list[bytes]](list), Counter[str]()
    segments = defaultdict[Path, list[dict[str, Any]]](list)
    for name, source, found, facts in _outputs(bundle, left):
        parts = sentences(facts, found.kind)
        long = len(parts) > 1
        where = folder / (f"{name}-long" if long else name)
        files[where / "hypotheses.jsonl"].append(_line(_row(source, found)))
        texts = [tokens(text, found.unit) for _, text in parts] if long else [found.reference or ()]
        files[where / "references.txt"] += [_text(text, found).encode() + b"\n" for text in texts]
        if long:
            segments[where] += [{"wav": source, "offset": part.offset, "duration": part.duration} for part, _ in parts]
    for where, rows in segments.items():
        files[where / "segments.json"].append(msgspec.json.encode(rows) + b"\n")
    return [*_written(files), *_left(left)]


def _outputs(bundle: Bundle, left: Counter[str]) -> Iterator[tuple[str, str, Emitted, ClipFacts]]:
    """Folder, source, output and clip of each measured utterance that has a reference; the others go to `left`."""
    channels, clips = text_channels(bundle.header), bundle.clips()
    for record in bundle.records():
        if record.window != "measure":
            left["not_measured"] += 1
            continue
        for utterance in record.utterances:
            for channel, stage in channels.items():
                found = emitted(record, utterance, channel, stage, clips)
                if isinstance(found, str):
                    left[found] += 1
                elif found.reference is None:
                    left["no_reference"] += 1
                else:
                    unit = "char" if found.unit == "char" else "word"
                    source = _UNSAFE.sub("_", f"{record.id}-{utterance.index}-{utterance.clip}")
                    yield f"{_UNSAFE.sub('_', channel)}-{unit}", source, found, clips[utterance.clip]


def _row(source: str, found: Emitted) -> dict[str, Any]:
    output = found.output()
    return {
        "source": source,
        "prediction": _text(found.units.texts, found),
        "reference": _text(found.reference or (), found),
        "delays": output.delays,
        "elapsed": output.elapsed,
        "source_length": output.source_ms,
    }


def _text(units: Sequence[str], found: Emitted) -> str:
    """Cut into the same units by whoever reads it."""
    return ("" if found.unit == "char" else " ").join(units)


def _line(row: dict[str, Any]) -> bytes:
    return msgspec.json.encode(row) + b"\n"


def _written(files: Files) -> Iterator[str]:
    for path, lines in sorted(files.items()):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, lines)
        except OSError as error:
            raise BundleError([f"cannot write {path}: {why(error)}; name another folder"]) from None
        if path.name in ("instances.log", "hypotheses.jsonl"):
            yield f"{path}: {len(lines)} outputs"


def _left(left: Counter[str]) -> list[str]:
    told = ", ".join(f"{reason} {count}" for reason, count in sorted(left.items()))
    return [f"in none of them: {told}"] if told else []
