"""What is wrong or odd about a clip, whatever corpus it comes from: readers translate, and this judges."""

import os
import re
import stat
from collections.abc import Iterator
from typing import Final
from unicodedata import is_normalized

from loadbench.corpus.clip import Clip, Track

ROUNDING_S: Final = 0.01  # a sum of written decimals may lie beyond the end by less than this
MAX_GLOSSES: Final = 15  # sign words of a sentence, T/CADHOH 0004-2023, Appendix B
UNITS: Final = ("char", "word")
REFERENCE: Final[dict[str, tuple[str, str]]] = {
    "sign2spoken": ("text", "gloss"),
    "spoken2sign": ("gloss", "transcript"),
    "speech2text": ("transcript", "text"),
}
# Sign languages by their codes, ISO 639-3; sgn is all of them, ISO 639-2.
SIGNED_CODES: Final = (
    "sgn ads ase asf asq bfi bvl bzs csc cse csf csg csl csn csq csr dse dsl ecs esl fcs fse fsl gse gsg gss hks "
    "hsh hsl icl ils inl ins ise isg isr jsl kvk lls lsl lsp lst mfs msd msr mzy nsi nsl nsp nzs pgz pks prl psc "
    "psd psl pso psp psr rms rsl sdl sfb sfs sgg slf sls sqk ssp ssr svk swl szs tsm tsq tss ugn ukl vgt xki xml "
    "ysl ysm zsl "
)
SIGNED: Final = frozenset(SIGNED_CODES.split())
HAN: Final = re.compile("[\u4e00-\u9fff\u3400-\u4dbf]")
CHINESE: Final = frozenset(("zh", "zho", "cmn", "yue"))
WITHOUT_HAN: Final = frozenset(("de", "en", "es", "fr", "it", "nl", "pt", "ru"))
CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # tabs and ends of lines are text
FULL_WIDTH: Final = re.compile("[\uff10-\uff19]")
UNDECODED: Final = "\ufffd"


def judged(clip: Clip) -> tuple[list[str], list[str]]:
    """(problems, warnings): what makes the clip unusable, and what is odd about it though it can be used.

    Its files need only be there: what is in them, the check of the media says.
    """
    problems: list[str] = []
    warnings = [*_odd_references(clip)]
    if len(clip.tracks) == 1:
        problems += _medium_problems(clip.tracks[0])
    for n, track in enumerate(clip.tracks if len(clip.tracks) > 1 else ()):
        problems += [f"tracks[{n}].{problem}" for problem in _medium_problems(track)]
    if not clip.tracks:
        problems.append("names no medium")
    elif clip.direction == "sign2spoken" and all(track.kind == "audio" for track in clip.tracks):
        problems.append("sign2spoken needs a video: video_filepath, frames_dir, or a video track; or landmarks")
    if not clip.source_lang.strip():
        problems.append("source_lang is unknown: the corpus does not say it, so you must (--source-lang)")
    if not clip.target_lang.strip():
        problems.append("target_lang is unknown: the corpus does not say it, so you must (--target-lang)")
    written = texts(clip)
    if clip.gloss == ():
        problems.append("gloss must not be empty")
    empty = [name for name, text in written if not text or text.isspace()]
    problems += [f"{name} must not be empty" for name in dict.fromkeys(empty)]
    whole = "\n".join([text for _, text in written])
    if CONTROL.search(whole) or not whole.isascii():
        problems += dict.fromkeys(f"{name} holds a null character" for name, text in written if "\0" in text)
        odd = dict.fromkeys((name, said) for name, text in written for said in _odd_writing(text))
        warnings += [f"clip {clip.id}: {name} {said}" for name, said in odd]
    if clip.activity_start_s is not None or clip.activity_end_s is not None or clip.gloss_spans or clip.words:
        problems += _time_problems(clip)
    if clip.segments:
        problems += _segment_problems(clip)
    return problems, warnings


def _medium_problems(track: Track) -> Iterator[str]:
    if track.offset_s.numerator < 0:  # comparing fractions takes a while
        yield f"offset must be 0 or more, not {float(track.offset_s)}"
    if track.duration_s is not None and track.duration_s.numerator <= 0:
        yield f"duration must be above 0, not {float(track.duration_s)}"
    try:
        mode = os.stat(track.path).st_mode  # noqa: PTH116  a third of the time of a check is spent here
    except (OSError, ValueError):
        mode = 0
    if track.pattern is not None:
        if not stat.S_ISDIR(mode):
            yield f"no such folder: {track.path}"
        if track.fps is None:
            yield "fps is missing: frames in a folder have no times of their own (--fps, where the corpus has none)"
    elif stat.S_ISDIR(mode):
        pictures = (
            "; a folder of pictures is named by frames_dir, frames_pattern and fps" if track.kind == "video" else ""
        )
        yield f"{track.path} is a folder, not a file{pictures}"
    elif not stat.S_ISREG(mode):
        yield f"{track.path} is no regular file" if mode else f"no such file: {track.path}"


def _time_problems(clip: Clip) -> Iterator[str]:
    length = segment_s(clip)
    for name, at in (("activity_start", clip.activity_start_s), ("activity_end", clip.activity_end_s)):
        if at is not None and not 0 <= at <= length:
            yield f"{name} {at} lies outside the segment (0 to {length:g} s)"
    if (
        clip.activity_start_s is not None
        and clip.activity_end_s is not None
        and clip.activity_end_s < clip.activity_start_s
    ):
        yield f"activity_end {clip.activity_end_s} is before activity_start {clip.activity_start_s}"
    for name, spans in (("gloss_spans", clip.gloss_spans), ("words", clip.words)):
        for n, span in enumerate(spans):
            if span["end"] < span["start"]:
                yield f"{name}[{n}] ends at {span['end']}, before its start at {span['start']}"
            if span["start"] < 0 or span["end"] > length:
                yield f"{name}[{n}] ({span['start']} to {span['end']}) lies outside the segment (0 to {length:g} s)"


def _segment_problems(clip: Clip) -> Iterator[str]:
    length, before = segment_s(clip), 0.0
    for n, part in enumerate(clip.segments):
        end = part["offset"] + part["duration"]
        if part["offset"] < before:
            yield f"segments[{n}] begins at {part['offset']}, before the one before it: sort them by their offsets"
        if end > length + ROUNDING_S:
            yield f"segments[{n}] ({part['offset']} to {end:g}) lies outside the segment (0 to {length:g} s)"
        if not any(part.get(name) for name in REFERENCE[clip.direction]):
            yield f"segments[{n}] has no reference ({' or '.join(REFERENCE[clip.direction])})"
        before = part["offset"]


def segment_s(clip: Clip) -> float:
    """The longest declared duration of the clip's media; infinity where one declares none."""
    if len(clip.tracks) == 1:
        length = clip.tracks[0].duration_s
        return float("inf") if length is None else float(length)
    declared = [track.duration_s for track in clip.tracks]
    return max((float("inf") if length is None else float(length) for length in declared), default=float("inf"))


def texts(clip: Clip) -> list[tuple[str, str]]:
    """The id and all references, each with the name of its field."""
    found = [("id", clip.id)]
    if clip.transcript is not None:
        found.append(("transcript", clip.transcript))
    if clip.text is not None:
        found.append(("text", clip.text))
    if clip.gloss:
        found += [("gloss", word) for word in clip.gloss]
    found += [("alt_text", text) for text in clip.alt_text]
    found += [("alt_gloss", word) for gloss in clip.alt_gloss for word in gloss]
    return found


def _odd_references(clip: Clip) -> Iterator[str]:
    if clip.gloss or clip.alt_gloss:
        for name, gloss in (("gloss", clip.gloss or ()), *(("alt_gloss", gloss) for gloss in clip.alt_gloss)):
            if len(gloss) > MAX_GLOSSES:
                yield f"{name} has {len(gloss)} signs; T/CADHOH 0004-2023 expects at most {MAX_GLOSSES} a sentence"
    for name, unit in (("text_unit", clip.text_unit), ("gloss_unit", clip.gloss_unit)):
        if unit is not None and unit not in UNITS:
            yield f"{name} {unit!r} is unknown and will not be used; known: {', '.join(UNITS)}"
    first, second = REFERENCE[clip.direction]
    if not (clip.segments or getattr(clip, first) or getattr(clip, second)):
        yield f"has no reference ({first} or {second}): its output cannot be scored"
    if reversed_languages(clip):
        yield f"source_lang {clip.source_lang} and target_lang {clip.target_lang} look reversed for {clip.direction}"


def _odd_writing(text: str) -> Iterator[str]:
    """What a reader would not see, and a comparison would."""
    control = CONTROL.search(text)
    if control and control[0] != "\0":
        yield f"holds the control character U+{ord(control[0]):04X}"
    if not is_normalized("NFC", text):
        yield "is not in Unicode form NFC: what looks the same may count as wrong"
    if digit := FULL_WIDTH.search(text):
        yield f"has full-width digits ({digit[0]}), which a service rarely writes"
    if UNDECODED in text:
        yield "holds U+FFFD: it was once read in a wrong encoding"


def reversed_languages(clip: Clip) -> bool:
    """Whether the two languages belong the other way round, by their kinds or by the writing of the references."""
    if clip.direction == "speech2text" and (clip.transcript is None or clip.text is None):
        return False
    source, target = main_language(clip.source_lang), main_language(clip.target_lang)
    if clip.direction == "sign2spoken":
        return target in SIGNED and source not in SIGNED
    if clip.direction == "spoken2sign":
        return source in SIGNED and target not in SIGNED
    said, shown = HAN.search(clip.transcript or ""), HAN.search(clip.text or "")
    if source in CHINESE and target in WITHOUT_HAN:
        return not said and shown is not None
    return source in WITHOUT_HAN and target in CHINESE and said is not None and not shown


def main_language(tag: str) -> str:
    """The language of a tag without its region: zh of zh-CN."""
    return tag.replace("_", "-").partition("-")[0].lower()
