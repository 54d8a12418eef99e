"""A run as a JUnit file: the verdict and each SLO is a test case, so that a build server shows which one failed.

What became of the sessions stands in the properties, and the composite score, under its name.
"""

import re
from typing import Any, Final
from xml.etree import ElementTree  # written here, never parsed

from loadbench.analysis.response import METRICS

SUITE: Final = "loadbench"
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(summary: dict[str, Any], scores: dict[str, Any]) -> bytes:
    """The file. An INVALID verdict is an error, a missed SLO a failure; a latency that nobody can know is skipped."""
    run, verdict = summary["run"], summary["verdict"]
    suite = ElementTree.Element("testsuite", name=SUITE, timestamp=run["begun_at"].split("+")[0].split(".")[0])
    suite.set("time", f"{run['duration_s']:.3f}")
    _properties(suite, summary["sessions"], scores)
    case = _case(suite, "tester", f"verdict {verdict['state']}")
    reasons = "\n".join(verdict["reasons"])
    if verdict["state"] == "INVALID":
        _say(case, "error", "the tester itself was late or failed", reasons)
    elif reasons:
        ElementTree.SubElement(case, "system-out").text = _printable(reasons)
    if not summary["complete"]:
        _say(_case(suite, "tester", "run is complete"), "error", "the run did not come to its end", "")
    if summary["damage"]:
        _say(_case(suite, "tester", "bundle is whole"), "error", "the bundle is damaged", "\n".join(summary["damage"]))
    for result in summary["slo"]:
        _objective(suite, result, usable=verdict["state"] != "INVALID")
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    suite.set("tests", str(len(suite.findall("testcase"))))
    for name, kind in kinds.items():
        suite.set(name, str(len(suite.findall(f"testcase/{kind}"))))
    ElementTree.indent(suite)
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)) + b"\n"


def _properties(suite: ElementTree.Element, counts: dict[str, Any], scores: dict[str, Any]) -> None:
    found = ElementTree.SubElement(suite, "properties")
    for name in ("started", "finished", "failed", "cut", "in_flight"):
        ElementTree.SubElement(found, "property", name=f"sessions.{name}", value=str(counts[name]))
    for part in filter(None, (scores["standard"], scores["not_the_standard"])):
        for direction, made in part["directions"].items():
            value, under = made["composite"]["value"], _printable(part["under"])
            name = f"composite.{direction} ({under})"
            ElementTree.SubElement(
                found, "property", name=name, value="none" if value is None else f"{value:.2f} ({under})"
            )


def _objective(suite: ElementTree.Element, result: dict[str, Any], *, usable: bool) -> None:
    case = _case(suite, "slo", result["name"])
    missing = "never" if result["bound"] == "never" else "no data"
    value = missing if result["value"] is None else f"{result['value']:.4g}"
    if not usable and result["name"].split(".")[0] in METRICS:
        _say(case, "skipped", "not judged: the tester itself was late or failed", "")
    elif not result["met"]:
        _say(case, "failure", f"{result['name']}: {value}, limit {result['limit']:g}", result["why"])


def _case(suite: ElementTree.Element, group: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=f"{SUITE}.{group}", name=_printable(name))


def _say(case: ElementTree.Element, kind: str, message: str, text: str) -> None:
    found = ElementTree.SubElement(case, kind, message=_printable(message))
    found.text = _printable(text) or None


def _printable(text: str) -> str:
    """Without characters that XML 1.0 cannot hold."""
    return _UNPRINTABLE.sub("\ufffd", text)
