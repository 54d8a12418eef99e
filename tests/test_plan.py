"""The plan file: defaults, flags over it, all problems at once, and what of it must be hidden."""

from pathlib import Path
from typing import Any

import pytest

from loadbench import plan as plans
from loadbench.plan import PlanError
from loadbench.results.slo import Slo

LEAST: dict[str, Any] = {"target.profile": "vosk", "target.url": "ws://127.0.0.1:2700", "corpus.path": "."}


def problems(**more: Any) -> list[str]:
    with pytest.raises(PlanError) as caught:
        plans.read(None, LEAST | {key.replace("__", "."): value for key, value in more.items()})
    return caught.value.problems


def test_a_plan_of_three_settings_has_the_defaults_of_the_design() -> None:
    plan = plans.read(None, LEAST)
    assert plan.workload.model == "closed"
    assert plan.workload.users == 1
    assert plan.media_start == "on_ready"
    assert plan.headline_metric == "final_from_source_end"
    assert plan.limits.final_s == 30
    assert plan.objectives() == [Slo(metric="completed", stat="min_share", limit=0.99)]


def test_an_open_workload_counts_from_the_planned_end() -> None:
    plan = plans.read(None, LEAST | {"workload.model": "constant", "workload.rate": 2.0, "workload.duration_s": 5})
    assert plan.media_start == "on_plan"
    assert plan.headline_metric == "final_from_planned_end"


def test_flags_lie_over_the_file_and_the_file_s_paths_are_its_own(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('[target]\nurl = "ws://127.0.0.1:1"\nprofile = "mine.yaml"\n[corpus]\npath = "clips"\n')
    plan = plans.read(file, {"target.url": "ws://127.0.0.1:2"})
    assert plan.target.url == "ws://127.0.0.1:2"
    assert plan.target.profile == str(tmp_path / "mine.yaml")
    assert plan.corpus.path == str(tmp_path / "clips")
    assert plans.read(file, {"corpus.path": "here"}).corpus.path == "here"


def test_objectives_are_read_with_their_unit_and_channel() -> None:
    plan = plans.read(None, LEAST | {"slo.final_from_source_end": {"p95_s": 2.0, "channel": "text"}})
    assert plan.objectives()[1] == Slo(metric="final_from_source_end", stat="p95", limit=2.0, channel="text")


@pytest.mark.parametrize(
    ("work", "kind", "stages"),
    [
        ({"users": 3, "ramp_s": 2}, "closed", [("main", 3, None, 2)]),
        (
            {"model": "steps", "levels": [5, 10], "step_s": 60, "ramp_s": 5},
            "closed",
            [("step-1", 5, 60, 5), ("step-2", 10, 60, 5)],
        ),
        (
            {"model": "steps", "of": "rate", "levels": [0.5], "step_s": 60, "arrivals": "poisson"},
            "poisson",
            [("step-1", 0.5, 60, 0)],
        ),
        (
            {"model": "spike", "rate": 2, "peak": 9, "before_s": 30, "spike_s": 10, "after_s": 60},
            "constant",
            [("before", 2, 30, 0), ("spike", 9, 10, 0), ("after", 2, 60, 0)],
        ),
        (
            {"model": "soak", "users": 4, "duration_s": 600, "windows": 2, "ramp_s": 9},
            "closed",
            [("soak-1", 4, 300, 9), ("soak-2", 4, 300, 0)],
        ),
        (
            {"model": "dialogue", "stages": [{"name": "calm", "users": 2, "duration_s": 9}]},
            "dialogue",
            [("calm", 2, 9, 0)],
        ),
    ],
)
def test_a_workload_is_laid_out_in_stages(work: dict[str, Any], kind: str, stages: list[Any]) -> None:
    plan = plans.read(None, LEAST | {"workload": work})
    assert (plan.workload.kind, [tuple(stage) for stage in plan.workload.laid_out]) == (kind, stages)
    assert plan.headline_metric == ("final_from_source_end" if kind in plans.PEOPLE else "final_from_planned_end")


def test_score_tables_are_beside_the_plan_that_names_them_and_a_beta_may_be_a_number(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "plan.toml").write_text(
        '[target]\nprofile = "vosk"\n[corpus]\npath = "corpus"\n[scoring]\ntables = "mine.toml"\nrouge_beta = 1.2\n'
    )
    found = plans.read(tmp_path / "plan.toml", {}).scoring
    assert (found.tables, found.rouge_beta) == (str(tmp_path / "mine.toml"), "1.2")
    (tmp_path / "plan.toml").write_text(
        '[target]\nprofile = "vosk"\n[corpus]\npath = "corpus"\n[scoring]\ntables = "illustrative"\n'
    )
    assert plans.read(tmp_path / "plan.toml", {}).scoring.tables == "illustrative"


def test_a_stage_has_objectives_of_its_own() -> None:
    spike = {"model": "spike", "users": 2, "peak": 9, "before_s": 30, "spike_s": 10, "after_s": 60}
    slo = {"final_from_source_end": {"p95_s": 2.0}, "stages": {"spike": {"final_from_source_end": {"p95_s": 9.0}}}}
    plan = plans.read(None, LEAST | {"workload": spike, "slo": slo})
    assert [(item.name, item.limit) for item in plan.objectives()] == [
        ("completed.min_share", 0.99),
        ("final_from_source_end.p95_s", 2.0),
        ("final_from_source_end.p95_s@spike", 9.0),
    ]


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("workload.users", 0, "workload.users must be above 0, not 0"),
        ("workload.users", "many", "workload.users: input should be a valid integer"),
        ("workload.think_s", -1, "workload.think_s must be at least 0, not -1"),
        ("workload", {"users": 2, "rate": 2.0, "model": "constant", "duration_s": 3}, "choose one"),
        ("workload.usrs", 3, "workload.usrs: no such setting; did you mean workload.users?"),
        ("workload.rate", 3.0, "rate goes with model"),
        ("workload.model", "open", "workload.model"),
        ("workload", {"model": "steps", "levels": [5, 10]}, 'model = "steps" needs step_s'),
        ("workload", {"model": "steps", "levels": [5, 2.5], "step_s": 9}, "a level of users must be whole"),
        ("workload", {"model": "steps", "levels": [0], "step_s": 9}, "the load never rises above 0"),
        ("workload", {"model": "steps", "levels": [5], "step_s": 9, "users": 2}, "neither users nor a rate"),
        ("workload", {"model": "spike", "users": 2, "peak": 9}, "needs before_s"),
        ("workload", {"model": "soak", "users": 2}, "needs duration_s"),
        ("workload", {"levels": [5]}, 'levels goes with model = "steps"'),
        ("workload", {"rate": 2.0, "model": "dialogue"}, "a dialogue workload has users"),
        ("workload", {"stages": [{"name": "a", "rate": 2, "duration_s": 3}]}, "a needs users, and no rate"),
        ("workload", {"stages": [{"name": "a", "users": 2, "duration_s": 3}] * 2}, "two are called a"),
        ("slo.stages", {"peak": {"completed": {"min_share": 0.9}}}, "no such stage; there are main"),
        ("slo.stages", {"main": {"completd": {"min_share": 0.9}}}, "did you mean completed?"),
        ("slo.wer", 0.4, "slo.wer must be a table"),
        ("limits.final_s", -1, "limits.final_s must be at least 0, not -1"),
        ("limits.final_s", float("nan"), "limits.final_s"),
        ("target.url", "127.0.0.1:2700", "target.url must begin with ws://"),
        ("target.url", "ws://", "target.url names no host"),
        ("target.url", "ws://127.0.0.1:99999", "target.url"),
        ("slo.final_from_source_en", {"p95_s": 1}, "did you mean final_from_source_end?"),
        ("slo.final_from_source_end", {"p96_s": 1}, "must be one of p50_s, p90_s, p95_s"),
        ("slo.completed", {"min_share": 99}, "99 % is 0.99"),
        ("scoring.rouge_beta", 3, "scoring.rouge_beta: input should be '1', '1.2' or 'p_over_r', not '3'"),
        ("slo.erasure", {"p95_s": 1}, "must be one of max, channel"),
        ("slo.score", {"max": 60}, "must be one of min, channel"),
        ("slo.bleu", {"max": 60}, "must be one of min, channel"),
        ("metrics.port", 70000, "metrics.port must be at most 65535"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_wrong(setting: str, value: Any, sentence: str) -> None:
    (found,) = problems(**{setting.replace(".", "__"): value})
    assert sentence in found


def test_all_problems_come_at_once() -> None:
    found = problems(workload__users=-1, limits__finals=3, target__url="nowhere", corpus__path="clips")
    assert len(found) == 4
    assert found[-1] == "corpus.path: clips: no such file or folder"


@pytest.mark.parametrize("text", ["[target", "a = 1\na = 2", "\x00"])
def test_a_file_that_is_no_toml_is_the_user_s_trouble(tmp_path: Path, text: str) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(text)
    with pytest.raises(PlanError, match="not a TOML file"):
        plans.read(file, {})


def test_secrets_come_from_where_they_are_and_never_stand_in_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("tok-FAKE-71\n")
    monkeypatch.setenv("STUB_KEY", "key-FAKE-72")
    monkeypatch.delenv("STUB_NONE", raising=False)
    good = {"a": "env:STUB_KEY", "b": f"file:{tmp_path / 'token'}", "c": "cmd:echo pw-FAKE-73"}
    plan = plans.read(None, LEAST | {"target.secrets": good})
    assert plans.secrets(plan, allow_exec=True) == {"a": "key-FAKE-72", "b": "tok-FAKE-71", "c": "pw-FAKE-73"}
    bad = {"a": "env:STUB_NONE", "b": "file:/nowhere/token", "c": "cmd:echo x", "d": "tok-FAKE-71"}
    with pytest.raises(PlanError) as caught:
        plans.secrets(plans.read(None, LEAST | {"target.secrets": bad}), allow_exec=False)
    assert len(caught.value.problems) == 4
    assert "FAKE" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "secret"),
    [
        ({"target.url": "ws://user:pw-FAKE-73@127.0.0.1:1"}, "pw-FAKE-73"),
        ({"target.url": "ws://127.0.0.1:1/?token=tok%20FAKE"}, "tok FAKE"),
        ({"target.headers": {"Authorization": "Bearer tok-FAKE-71"}}, "tok-FAKE-71"),
        ({"target.headers": {"X-Api-Key": "key-FAKE-72"}}, "key-FAKE-72"),
        ({"target.proxy": "http://user:p%40-FAKE-74@127.0.0.1:1"}, "p@-FAKE-74"),
        ({"target.proxy": "http://user:p%40-FAKE-74@127.0.0.1:1"}, "user:p@-FAKE-74"),
        ({"target.proxy": "http://tok-FAKE-75@127.0.0.1:1"}, "tok-FAKE-75"),
    ],
)
def test_secrets_in_an_address_or_a_header_are_known_and_will_be_masked(settings: dict[str, Any], secret: str) -> None:
    assert secret in plans.hidden(plans.read(None, LEAST | settings))


def test_plain_words_are_not_taken_for_secrets() -> None:
    plan = plans.read(None, LEAST | {"target.headers": {"Authorization": "Bearer {secret.token}", "x-user": "anna"}})
    assert plans.hidden(plan) == {"Bearer {secret.token}"}


def test_a_section_that_is_none_is_named_as_such() -> None:
    with pytest.raises(PlanError, match="target must be a section") as caught:
        plans.read(None, {"target": 3, "corpus.path": "."})
    assert len(caught.value.problems) == 1


DEEP: Any = []
for _ in range(3000):
    DEEP = [DEEP]

BEYOND = [
    ("workload__duration_s", 1e308, "workload.duration_s must be at most 1e+07, not 1e+308"),
    ("workload__warmup_s", 2**200, "workload.warmup_s must be at most 1e+07"),
    ("workload__rate", 1e6, "workload.rate must be at most 100000"),
    ("workload__peak", 1e6, "workload.peak must be at most 100000"),
    ("workload__levels", [1.0, 1e6], "workload.levels.1 must be at most 100000"),
    ("workload__levels", [1.0] * 1001, "workload.levels"),
    (
        "workload__stages",
        [{"name": "a", "users": 1, "duration_s": 1e9}],
        "workload.stages.0.duration_s must be at most",
    ),
    ("workload__stages", [{"name": "a", "rate": 1e9, "duration_s": 1}], "workload.stages.0.rate must be at most"),
    ("workload__sessions", 10**400, "workload.sessions"),
    ("limits__final_s", 1e308, "limits.final_s must be at most"),
    ("limits__message_mib", 1e300, "limits.message_mib must be at most"),
    ("seed__value", 2**200, "seed.value must be at most"),
    ("verdict__taint_gap_ms", 1e300, "verdict.taint_gap_ms must be at most"),
    ("corpus__path", "a\0b", "corpus.path: there is a null character in it"),
    ("corpus__fps", "fast", 'corpus.fps: must be a rate as in 25, 29.97 or "30000/1001"'),
    ("corpus__fps", True, "corpus.fps: must be a rate"),
    ("corpus__max_duration_s", 0, "corpus.max_duration_s must be"),
    ("media__cache", "\0", "media.cache: there is a null character in it"),
    ("target__secrets", {"x": "file:\0"}, "target.secrets.x: there is a null character in it"),
    ("title", "\udcff", "title: there are bytes in it that are not UTF-8"),
    ("corpus__ids", DEEP, "corpus.ids"),
    ("slo", {"a": DEEP}, "nested too deeply"),
    ("target__url", "ws://127.0.0.1\n:2700", "target.url: there is a control character in it"),
    ("target__url", "ws://127.0.0.1:2700/\x07", "target.url: there is a control character in it"),
    ("slo__wer", {"max": True}, "slo.wer.max must be a number from 0 to 1e+07, not True"),
    ("slo__final_from_source_end", {"p95_s": float("inf")}, "must be a number from 0"),
    ("slo__final_from_source_end", {"p95_s": float("nan")}, "must be a number from 0"),
    ("slo__final_from_source_end", {"p95_s": 1, "channel": 5}, "must be a channel's name, not 5"),
]


@pytest.mark.parametrize(("key", "value", "told"), BEYOND)
def test_a_value_beyond_all_measure_is_one_problem_and_no_traceback(key: str, value: Any, told: str) -> None:
    assert any(told in problem for problem in problems(**{key: value})), problems(**{key: value})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = " + "[" * 5000, "not a TOML file: nested too deeply"),
        ("x = " + "9" * 5000, "not a TOML file: a number of too many digits"),
        ("x = ", "not a TOML file: Invalid value"),
        ('[corpus]\npath = "a\\u0000"', "corpus.path: there is a null character in it"),
        ('[corpus]\npath = "~nobody-of-that-name/x"', "no such file or folder"),
        ("[slo" + ".a" * 300 + "]\nb = 1", "nested too deeply"),
    ],
)
def test_a_plan_file_that_cannot_be_is_one_clear_error(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(PlanError) as caught:
        plans.read(tmp_path / "plan.toml", {})
    assert any(told in problem for problem in caught.value.problems), caught.value.problems


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("file:/dev/zero", "more than 65536 characters are no secret"),
        ("cmd:echo 'half", "cmd: failed: ValueError"),
        ("env:LB_NO_TEXT", "bytes in it that are not UTF-8"),
    ],
)
def test_a_secret_that_cannot_be_one_is_refused(monkeypatch: pytest.MonkeyPatch, where: str, told: str) -> None:
    monkeypatch.setenv("LB_NO_TEXT", "\udcff\udcfe")
    plan = plans.read(None, LEAST | {"target.secrets": {"token": where}})
    with pytest.raises(PlanError, match=told):
        plans.secrets(plan, allow_exec=True)


@pytest.mark.parametrize(
    "url", ["http://h:3128", "http://user:pw@h:1/", "http://[::1]:8080", "http://u:{secret.p}@h:1"]
)
def test_a_proxy_is_an_http_address(url: str) -> None:
    assert plans.read(None, LEAST | {"target.proxy": url}).target.proxy == url


@pytest.mark.parametrize("url", ["h:3128", "https://h:1", "socks5://h:1", "http://", "http://h:port", "http://h/path"])
def test_any_other_proxy_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(PlanError, match=r"target\.proxy must be http://HOST:PORT") as caught:
        plans.read(None, LEAST | {"target.proxy": url.replace("://", "://user:pw-FAKE-76@")})
    assert len(caught.value.problems) == 1
    assert "FAKE" not in str(caught.value)


def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert plans.read(None, LEAST).target.proxy == ""


def test_certificates_of_a_plan_lie_beside_it(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        '[target]\nurl = "wss://h"\nprofile = "vosk"\n[target.tls]\nca_file = "ca.pem"\ncert_file = "/abs/c.pem"\n'
        '[corpus]\npath = "."\n'
    )
    tls = plans.read(tmp_path / "plan.toml", {}).target.tls
    assert (tls.ca_file, tls.cert_file, tls.key_file) == (str(tmp_path / "ca.pem"), "/abs/c.pem", None)
