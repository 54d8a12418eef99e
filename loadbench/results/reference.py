"""What an output is held against, and in which unit it is counted. Both halves of the offline wing need it: scoring
compares the texts, analysis counts their units over time.
"""

from typing import Final, Literal, get_args

from loadbench.results.record import ClipFacts, Sentence

Kind = Literal["gloss", "transcript", "text"]
Unit = Literal["word", "char", "gloss"]
UNITS: Final = get_args(Unit)
# Written without spaces between words: a "word" there would be a whole sentence, and its rate 1.0 for one wrong sign.
UNSPACED: Final = frozenset(("zh", "cmn", "yue", "wuu", "nan", "hak", "ja", "jpn", "zho", "th", "lo", "km", "my"))

# (stage of the channel, direction of the clip) -> which reference is the right answer
REFERENCES: Final[dict[tuple[str, str], Kind]] = {
    ("recognition", "sign2spoken"): "gloss",
    ("recognition", "spoken2sign"): "transcript",
    ("recognition", "speech2text"): "transcript",
    ("translation", "sign2spoken"): "text",
    ("translation", "spoken2sign"): "gloss",
    ("translation", "speech2text"): "text",
    ("media", "sign2spoken"): "text",
    ("media", "speech2text"): "text",
}


def references(facts: ClipFacts, kind: Kind) -> list[str]:
    """The right answers that a clip has of a kind, the reference first; glosses are joined by spaces. Empty: none.

    A long recording that has none of its own has that of its sentences, one after the other.
    """
    whole = {
        "transcript": [] if facts.transcript is None else [facts.transcript],
        "text": [] if facts.text is None else [facts.text, *facts.alt_text],
        "gloss": [] if facts.gloss is None else [" ".join(items) for items in [facts.gloss, *facts.alt_gloss]],
    }[kind]
    said = [text for _, text in sentences(facts, kind)]
    return whole or ([" ".join(said)] if said else [])


def sentences(facts: ClipFacts, kind: Kind) -> list[tuple[Sentence, str]]:
    """The sentences of a recording, each with its right answer of a kind; empty unless every one has it."""
    said = [
        (each, each.gloss and " ".join(each.gloss) if kind == "gloss" else getattr(each, kind))
        for each in facts.segments
    ]
    return [(each, text) for each, text in said if text] if all(text for _, text in said) else []


def language_of(facts: ClipFacts, kind: Kind) -> str:
    """The language that such a reference is in."""
    return facts.source_lang if kind == "transcript" else facts.target_lang


def unit_in(facts: ClipFacts, kind: Kind) -> Unit:
    """The unit in which such a reference of the clip is counted."""
    return unit_of(kind, language_of(facts, kind), facts.gloss_unit if kind == "gloss" else facts.text_unit)


def unit_of(kind: Kind, language: str, override: str | None = None) -> Unit:
    """The unit in which a reference is counted: glosses item by item, Chinese and the like by character, else words.

    `override` is the corpus's own word for it ("word" or "char").
    """
    if override == "char":
        return "char"
    if kind == "gloss":
        return "gloss"
    if override == "word":
        return "word"
    return "char" if language.lower().replace("_", "-").split("-")[0] in UNSPACED else "word"


def tokens(text: str, unit: Unit) -> list[str]:
    """`text` cut into units: characters without any white space, or what stands between white space."""
    words = text.split()
    return list("".join(words)) if unit == "char" else words
