"""What makes no sense in a profile, though its schema allows it."""

import pytest

from loadbench.session.load import ProfileError, load_text

AUDIO = "media: {kind: audio, chunk_ms: 100}\n"
RULE = "receive: {rules: [{has: text, text: {model: unkeyed, text: text}}]}\n"
HTTP = "transport: {kind: http}\nend: [{end_body: true}]\n"
LINES = "receive: {framing: lines, rules: [{has: text, text: {model: unkeyed, text: text}}]}\n"
REQUESTS = "transport: {kind: requests, requests: {media: PUT /in}}\n"
FORM = f"transport: {{kind: http, form: {{}}}}\nmedia: {{kind: audio, pace: whole}}\nend: [{{end_body: true}}]\n{LINES}"


def told(extra: str) -> list[str]:
    """The problems of a sound WebSocket profile in which `extra` replaces the sections that it names."""
    text = extra if extra.endswith("\n") else extra + "\n"
    sections = {"transport:": "transport: {kind: websocket}\n", "media:": AUDIO, "receive:": RULE}
    kept = [default for key, default in sections.items() if not any(line.startswith(key) for line in text.splitlines())]
    try:
        load_text("name: mine\n" + text + "".join(kept), "mine.yaml")
    except ProfileError as error:
        return [problem.split(": ", 1)[1] for problem in error.problems]
    return []


def receive(rules: str, extra: str = "") -> str:
    return f"receive: {{rules: [{rules}]{extra}}}"


def text(rule: str) -> str:
    return receive(f"{{has: a, text: {{{rule}}}}}")


def spoken(part: str) -> str:
    channels = "channels: {speech: {stage: media, medium: audio}}\n"
    return channels + receive(f"{{has: a, channel: speech, {part}}}")


def media(part: str) -> str:
    return f"media: {{{part}}}"


@pytest.mark.parametrize(
    "extra",
    [
        "",
        'params: {x: "1"}\nopen: [{send_json: {a: "{param.x} {session.uuid} {clip.anything} {secret.K} {time.unix}"}}]',
        'open: [{wait: {capture: {id: a.b}}}, {send_text: "{captured.id}"}]\nend: [{send_text: "{captured.id}"}]',
        'end: [{send_json: {last: "{count.chunks_sent}"}}]',
        'open: [{send_text: "{{no.field}} {\\"a\\": 1}"}]',
        'transport: {kind: websocket, url: "ws://{host}:{port}/", ping: {every_s: 5, timeout_s: 5}, compression: true}',
        HTTP + LINES,
        FORM,
        media("kind: frames, codec: rgb24, width: 9, height: 9, fit: pad, late: drop_late"),
        media("kind: frames, codec: h264, width: 640, fps: 15, crf: 23, keyframe_s: 1, bframes: 2"),
        media("kind: video, container: fmp4, slice_ms: 500, header: apart, bitrate_kbps: 500, height: 480"),
        media('kind: video, container: file, pace: whole, frame: text, message: {v: "{media.base64}"}'),
        "transport: {kind: process}\nend: [{done: {on: [close]}}]\n" + LINES + media("kind: frames, codec: h264"),
        REQUESTS.replace("}}", ", open: POST /a/b?c=1, end: DELETE /a, poll: {request: GET /out, every_ms: 200}}}")
        + 'open: [{send_text: ""}]\nend: [{send_json: {}}]\n'
        + 'media: {kind: audio, chunk_ms: 9, frame: text, message: {x: "{media.floats}"}}',
        "channels: {a: {}, translation: {stage: translation}}\n"
        'receive: {rules: [{has: x, channel: "translation:{lang}", text: {model: unkeyed, text: t}}]}',
        text("model: keyed, text: t, key: k, order: number, seals_lower: true, final: f, start: a, end: b, join: ''"),
        text("model: delta, replace: t, final: true"),
        text("model: delta, text: t, key: k"),
        text("model: snapshot, committed: c, text: t, tail: x"),
        text("model: tokens, items: i, text: t, final: f, ignore: ['<end>']"),
        text("model: tokens, committed: c, tail: i, text: t"),
        'params: {n: "1"}\nopen: [{send_json: {a: "{number:param.n}"}}]',
        'media: {kind: audio, chunk_ms: 9, also: {kind: frames, frame: text, message: {i: "{media.base64}"}}}',
        'media: {kind: audio, chunk_ms: 100, frame: text, message: "{media.base64}", also: {kind: frames}}',
        text("model: edit, text: t, delete: d, unit_of_delete: words"),
        text("model: edit, text: t, key: k, from_key: a, to_key: b, order: number"),
        text("model: labels, text: t, confidence: c, min_confidence: 0.5, accept_after: 2, collapse: false"),
        receive("{has: a, each: a, where: b, event: ignore}", ", decode: nested, nested: data.x"),
        "never_final: {rule: promote_on_quiet, quiet_s: 2}",
        'media: {kind: frames, frame: text, message: {i: "{media.base64}"}, base64_prefix: "data:"}',
        "end: [{silence_s: 1}, {quiet: {for_s: 1, max_s: 2}}, {send_base64: AAE=}, {done: {}}, {grace_s: 1}]",
        "keepalive: {every_s: 5, send_text: ''}",
        "end: [{done: {on: [message]}}]\n" + receive("{has: a, event: done}"),
        'signed: {a: {md5: "{time.unix}"}, b: {hmac: sha1, key: "{secret.k}", message: "{signed.a}", as: hex}}\n'
        'transport: {kind: websocket, query: [[s, "{signed.b}"]]}\nopen: [{send_text: "{signed.b} {random.hex}"}]',
        'signed: {q: {sorted_query: {b: "{time.iso}", a: "1"}, quote: false}, u: {quote: "{host} {time.rfc1123}"}}',
        'prelude: [{request: "POST https://h/{session.id}", json: {a: 1}, capture: {url: url, token: t}},'
        ' {request: "GET {captured.url}", headers: {a: "{captured.token}"}, capture: {w: w}}]\n'
        'transport: {kind: websocket, url: "{captured.w}"}\nend: [{send_text: "{captured.token}"}]',
        'begin: [{send_json: {id: "{utterance.uuid}", n: "{utterance.index}"}}, {wait: {has: a, capture: {c: a}}}]\n'
        'end: [{send_text: "{captured.c} {count.acked} {count.media_ms} {count.bytes_sent}"}]',
        'params: {m: "1"}\nopen: [{wait: {has: a, capture: {w: a}}}, {refuse: "no {captured.w}", '
        'when: {field: captured.w, equals: "false"}}]\n'
        'end: [{when: {field: param.m, differs: "1"}, send_text: x}, {done: {on: [close]}, '
        'when: {field: param.m, equals: "1"}}, {done: {}, when: {field: param.m, differs: "1"}}]',
        "end: [{done: {on: [settled]}}]\n"
        + receive(
            "{has: a, event: pending, key: id}, {has: b, event: settled, key: id, text: {model: unkeyed, text: b}}"
        ),
        receive("{has: a, event: done}", ", clock: {processed: a, final: b, unit: hms}"),
        receive("{like: {text: ^ERROR}, outcome: fatal}") + "\nend: [{done: {on: [message], like: {a.b: c}}}]",
        "transport: {kind: websocket, ping: {every_s: 3, timeout_s: 3, close: true}}",
        "end: [{done: {on: [message, quiet], has: a, quiet_s: 2}}]",
        receive("{has: a, event: done}", ", statuses: [{close_code: [1000], before_output: true, outcome: rejected}]"),
    ],
)
def test_a_profile_that_makes_sense_is_taken(extra: str) -> None:
    assert told(extra) == []


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        # fields of templates
        ('open: [{send_json: {a: "{sesion.id}"}}]',
         "open[0].send_json: {sesion.id}: no such field; allowed here: host, "),
        ('open: [{send_text: "{param.x}"}]', "open[0].send_text: {param.x}: params has no x; it has none"),
        ('open: [{send_text: "{env.HOME}"}]',
         "open[0].send_text: {env.HOME}: the environment is not read by profiles; write "
         "{secret.HOME}"),
        ('open: [{send_text: "{captured.i}"}, {wait: {capture: {i: a}}}]',
         "open[0].send_text: {captured.i}: nothing before it captures i"),
        ('open: [{send_text: "{media.ms}"}]', "open[0].send_text: {media.ms}: no such field"),
        ('open: [{send_text: "{count.chunks_sent}"}]', "open[0].send_text: {count.chunks_sent}: no such field"),
        ('transport: {kind: websocket, headers: {a: "{captured.x}"}}',
         "transport.headers.a: {captured.x}: nothing before it captures x"),
        ('transport: {kind: websocket, query: [[a, "{x}"]]}', "transport.query[0][1]: {x}: no such field"),
        ('open: [{send_json: {"{clip.id}": 1}}]', "open[0].send_json: the key '{clip.id}' would be sent as it stands"),
        ("open: [{send_json: {a: .nan}}]", "open[0].send_json: JSON has no way to write nan"),
        ("open: [{send_base64: '!'}]", "open[0].send_base64: is not base64"),
        # selectors
        (receive("{match: 'a ==', event: done}"), "receive.rules[0].match: 'a ==' is no JMESPath expression: "),
        (receive("{match: 'foo(a)', event: done}"), "receive.rules[0].match: JMESPath has no function foo()"),
        (text("model: unkeyed, text: '['"), "receive.rules[0].text.text: '[' is no JMESPath expression"),
        (text("model: unkeyed, text: t, final: 'a ='"), "receive.rules[0].text.final: 'a =' is no JMESPath expression"),
        ("end: [{poll: {request: GET /a, every_s: 1}}]", "end[0].poll: only kind: requests can make one"),
        ("end: [{done: {on: [close]}}, {wait: {has: a}}]", "end[1].wait: comes before the done step, after which"),
        ('transport: {kind: requests, requests: {media: PUT /a}}\n'
         'end: [{poll: {request: jobs, every_s: 1}}, {done: {on: [close]}}]',
         "end[0].poll.request: must be a method and a path, as GET /jobs/{captured.id}, not 'jobs'"),
        ("open: [{wait: {capture: {i: a}, may_be_empty: [j]}}]",
         "open[0].wait.may_be_empty[0]: j is not captured here; captured: i"),
        ("open: [{wait: {capture: {i: 'a['}}}]", "open[0].wait.capture.i: 'a[' is no JMESPath expression"),
        ("media: {kind: audio, chunk_ms: 9, ack: {echo: 'a['}}", "media.ack.echo: 'a[' is no JMESPath expression"),
        # channels
        (receive("{has: a, channel: x, text: {model: unkeyed, text: t}}"),
         "receive.rules[0].channel: 'x' is no declared "
         "channel; declared: transcript"),
        (receive("{has: a, channel: 'x:{lang}', text: {model: unkeyed, text: t}}"),
         "receive.rules[0].channel: 'x:{lang}' is"),
        (receive("{has: a, channel: 'transcript:{a[}', text: {model: unkeyed, text: t}}"),
         "receive.rules[0].channel: 'a['"),
        ("channels: {a: {}, b: {}}", "receive.rules[0]: must name its channel; declared: a, b"),
        ("channels: {transcript: {}, a: {stage: media}}\nreceive: {rules: [{has: a, event: done}]}",
         "channels.a.medium: belongs to stage: media, which needs it"),
        ("channels: {transcript: {medium: audio}}", "channels.transcript.medium: belongs to stage: media"),
        ("channels: {transcript: {audible_dbfs: -40}}", "channels.transcript.audible_dbfs: only a channel of audio"),
        (spoken("media: {base64: d, format: s16le}"), "receive.rules[0].media: s16le needs rate_hz"),
        (spoken("media: {format: s16le, rate_hz: 8000}"), "receive.rules[0].media: needs either base64 or hex"),
        (spoken("media: {base64: d, hex: d, format: alaw, rate_hz: 8000}"),
         "receive.rules[0].media: needs either base64 or hex"),
        (spoken("media: {base64: 'a[', format: alaw, rate_hz: 8000}"), "receive.rules[0].media.base64: 'a[' is no"),
        (spoken("media: {base64: d, format: jpeg, fps: 25}"), "receive.rules[0].channel: jpeg is video, and channel"),
        (spoken("media: {base64: d, format: container, fps: 2}"),
         "receive.rules[0].media.fps: has no meaning for container"),
        (spoken("text: {model: unkeyed, text: t}"), "receive.rules[0].channel: speech is a channel of media"),
        (spoken("text: {model: unkeyed, text: t}, media: {base64: d, format: container}"),
         "receive.rules[0].media: one rule gives text or media"),
        (receive("{has: a, media: {base64: d, format: container}}"),
         "receive.rules[0].media: transcript is no declared channel of stage: media"),
        (receive("{has: a, event: done}", ", binary: {channel: x, format: container}"),
         "receive.binary.channel: x is no declared channel of stage: media"),
        ("primary: x", "primary: no such channel; declared: transcript"),
        # rules
        (receive("{has: a}"), "receive.rules[0]: says nothing about the messages that fit"),
        (receive("{has: a, where: b, event: done}"), "receive.rules[0].where: chooses among the elements of a list"),
        (receive("{has: a, event: done, detail: b}"), "receive.rules[0].detail: belongs to an outcome"),
        (receive("{has: a, event: done, channel: transcript}"),
         "receive.rules[0].channel: belongs to a rule with text or media"),
        # text models
        (text("model: unkeyed"), "receive.rules[0].text: model unkeyed needs text"),
        (text("model: unkeyed, text: t, key: k"),
         "receive.rules[0].text.key: model unkeyed does not take it; allowed here: "),
        (text("model: keyed, text: t"), "receive.rules[0].text: model keyed needs key"),
        (text("model: keyed, text: t, key: k, replace: r"),
         "receive.rules[0].text.replace: model keyed does not take it"),
        (text("model: delta"), "receive.rules[0].text: model delta needs text or replace"),
        (text("model: snapshot, text: t"), "receive.rules[0].text: model snapshot needs committed or tail"),
        (text("model: snapshot, tail: t, final: true"), "receive.rules[0].text.final: model snapshot does not take it"),
        (text("model: tokens, text: t"), "receive.rules[0].text: model tokens needs items"),
        (text("model: edit, text: t, delete: d, key: k"),
         "receive.rules[0].text: model edit takes either delete, or key, "),
        (text("model: edit, text: t, from_key: a"),
         "receive.rules[0].text: model edit takes either delete, or key, from_key"),
        (text("model: labels, text: t, min_confidence: 1"), "receive.rules[0].text.min_confidence: needs confidence"),
        (text("model: tokens, committed: c, items: i, text: t"),
         "receive.rules[0].text: model tokens takes either items with final, or committed and tail"),
        # transports
        (HTTP + RULE, "receive.framing: an HTTP body must be cut into messages; allowed here: lines, sse, auto"),
        ("transport: {kind: process, headers: {a: b}}\n" + LINES, "transport.headers: only WebSocket and HTTP has it"),
        ("transport: {kind: process, ping: {every_s: 3}}\n" + LINES, "transport.ping: only WebSocket has it"),
        ("transport: {kind: process, options: {a: b}}\n" + LINES, "transport.options: only a plug-in has it"),
        ("transport: {kind: upload}", "transport.kind: upload is loadbench's own; allowed here: websocket, http"),
        ("transport: {kind: websocket, stdin: lines}", "transport.stdin: only a local program has it"),
        ("transport: {kind: process, stdin: lines}\n" + LINES, "media.frame: bytes are no lines"),
        ('transport: {kind: process, url: "exec:a {secret.b}"}\n' + LINES, "transport.url: a command line can be read"),
        ("transport: {kind: process}\nend: [{done: {on: [end_of_response]}}]\n" + LINES,
         "end[0].done.on: only an HTTP response ends"),
        ("transport: {kind: process}\nmedia: {kind: frames}\n" + LINES, "media: a program could not tell where one"),
        ("transport: {kind: process}", "receive.framing: a program says one message a line; allowed here: lines"),
        ("transport: {kind: http}\n" + LINES, "end: an HTTP request needs the step end_body: true"),
        ("transport: {kind: http, ping: {every_s: 3}}\nend: [{end_body: true}]\n" + LINES,
         "transport.ping: only WebSocket"),
        ("transport: {kind: http, subprotocols: [a]}\nend: [{end_body: true}]\n" + LINES,
         "transport.subprotocols: only WebS"),
        (HTTP + LINES + 'media: {kind: audio, chunk_ms: 9, frame: text, message: "{media.base64}"}',
         "media.frame: an HTTP body has no text frames; allowed here: binary"),
        (HTTP + LINES + "keepalive: {every_s: 3, send_text: x}",
         "keepalive: an HTTP request has no keep-alive messages"),
        ("transport: {kind: websocket, method: PUT}", "transport.method: only HTTP has it"),
        ("transport: {kind: websocket, ping: {timeout_s: 3}}", "transport.ping.timeout_s: needs every_s"),
        ("transport: {kind: websocket, ping: {every_s: 3, close: true}}",
         "transport.ping.close: needs timeout_s"),
        ("end: [{end_body: true}]", "end[0].end_body: only an HTTP stream has a body to end"),
        ("end: [{done: {on: [end_of_response]}}]", "end[0].done.on: only an HTTP response ends"),
        (LINES, "receive.framing: WebSocket messages are whole already; allowed here: message"),
        # a request for each message, and uploads
        ("transport: {kind: requests}", "transport.requests: kind: requests and the requests that it makes need each"),
        ("transport: {kind: websocket, requests: {media: PUT /in}}", "transport.requests: kind: requests and the requ"),
        (REQUESTS.replace("PUT /in", "put in"), "transport.requests.media: must be a method and a path, for instance"),
        (REQUESTS.replace("}}", ", poll: {request: GET, every_ms: 9}}}"), "transport.requests.poll.request: must be"),
        (REQUESTS.replace("kind: requests", "kind: requests, method: PUT"), "transport.method: each of the requests"),
        (REQUESTS + "open: [{send_text: x}]", "transport.requests.open: is missing: the script `open` sends a message"),
        (REQUESTS + "end: [{send_text: x}]", "transport.requests.end: is missing: the script `end` sends a message"),
        (REQUESTS + "end: [{end_body: true}]", "end[0].end_body: only an HTTP stream has a body to end"),
        (REQUESTS + "keepalive: {every_s: 3, send_text: x}", "keepalive: an HTTP request has no keep-alive messages"),
        (REQUESTS + LINES, "receive.framing: answers to requests are whole already; allowed here: message"),
        (REQUESTS + receive("{has: a, event: done}", ", decode: text"), "receive.decode: an answer without a body is "),
        (HTTP.replace("kind: http", "kind: http, form: {}") + LINES, "transport.form: uploads a whole file: it needs "),
        (FORM.replace("form: {}", "form: {}, content_type: a/b"), "transport.content_type: a form has its own"),
        (FORM + "open: [{send_text: x}]", "open[0]: an upload is one message, and there is no room for another"),
        ("transport: {kind: websocket, form: {}}\n" + media("kind: audio, pace: whole"),
         "transport.form: only kind: http"),
        (media("kind: audio, pace: whole, chunk_ms: 9"), "media.chunk_ms: a whole clip is one chunk, of its own"),
        (media("kind: frames, pace: whole"), "media.pace: only audio and video can be sent whole"),
        (media("kind: audio, pace: whole") + "\nend: [{silence_s: 1}]",
         "end[0].silence_s: a whole clip is one chunk, and"),
        (media('kind: audio, chunk_ms: 9, format: alaw, frame: text, message: ["{media.floats}"]'),
         "media.message: {media.floats} is for audio of format s16le or f32le"),
        (media('kind: audio, chunk_ms: 9, frame: text, message: ["{media.floats}"], last: ["{media.base64}"]'),
         "media.last: must hold the media as `message` does, not as {media.base64}"),
        # the end script
        ("end: [{done: {}}, {done: {}}]", "end[1].done: there is a done step before it"),
        ("end: [{done: {on: []}}]", "end[0].done.on: names no event"),
        ("end: [{done: {on: [message]}}]", "end[0].done.on: no message means done: give has or match here"),
        ("end: [{done: {on: [quiet]}}]", "end[0].done.quiet_s: belongs to quiet in `on`, which needs it"),
        ("end: [{done: {quiet_s: 2}}]", "end[0].done.quiet_s: belongs to quiet in `on`"),
        ("end: [{grace_s: 1}, {done: {}}]", "end[0].grace_s: the grace comes after the done step"),
        ("end: [{send_text: x}, {silence_s: 1}]", "end[1].silence_s: silence is added to the media"),
        ("media: {kind: frames}\nend: [{silence_s: 1}]", "end[0].silence_s: pictures have no silence"),
        ("end: [{quiet: {for_s: 3, max_s: 2}}]", "end[0].quiet.for_s: is longer than max_s"),
        # media
        (media("kind: audio"), "media: audio needs either chunk_ms or chunk_bytes"),
        (media("kind: audio, chunk_ms: 1, chunk_bytes: 2"), "media: audio needs either chunk_ms or chunk_bytes"),
        (media("kind: audio, chunk_bytes: 3"), "media.chunk_bytes: must be a multiple of 2"),
        (media("kind: audio, chunk_ms: 0.001"), "media.chunk_ms: is less than one sample at 16000 Hz"),
        (media("kind: audio, chunk_ms: 9, fps: 3"), "media.fps: has no meaning for audio"),
        (media("kind: frames, chunk_ms: 9"), "media.chunk_ms: has no meaning for frames"),
        (media("kind: frames, fps: 0"), "media.fps: must be above 0"),
        (media("kind: frames, frame: text"), "media: text frames need a message that holds {media.base64}"),
        (media("kind: frames, frame: text, message: {a: 1}"),
         "media.message: must hold {media.base64}, {media.floats} or {media.landmarks} exactly once, not 0"),
        (media('kind: frames, frame: text, message: "{media.base64}", last: {a: 1}'),
         "media.last: must hold {media.base64}"),
        (media("kind: landmarks"), "media.frame: landmarks are JSON; allowed here: text"),
        (media('kind: landmarks, frame: text, message: "{media.base64}"'),
         "media.message: kind: landmarks and {media.landmarks}, or {media.landmarks.NAME}, need each other"),
        (media('kind: frames, frame: text, message: "{media.landmarks.pose}"'),
         "media.message: kind: landmarks and {media.landmarks}, or {media.landmarks.NAME}, need each other"),
        (media('kind: landmarks, frame: text, message: "{media.landmarks.pose.x}"'),
         "media.message: {media.landmarks.pose.x}: a frame of landmarks has members, and they have no fields here"),
        (media('kind: landmarks, frame: text, message: "{media.landmarks.a}", last: "{media.landmarks.b}"'),
         "media.last: must hold the media as `message` does"),
        (media('kind: landmarks, frame: text, message: "{media.landmarks}", quality: 3'),
         "media.quality: has no meaning for landmarks"),
        (media('kind: landmarks, frame: text, message: "{media.landmarks}", batch: 0'), "media.batch: must be above 0"),
        ("end: [{send_text: '{media.landmarks.a}'}]", "end[0].send_text: {media.landmarks.a}: no such field"),
        (media("kind: frames, container: webm"), "media.container: has no meaning for frames"),
        (media("kind: audio, container: ogg, chunk_ms: 15"), "media.chunk_ms: Opus is cut at multiples of 10 ms"),
        (media("kind: audio, container: webm, chunk_ms: 10, rate_hz: 44100"), "media.rate_hz: Opus takes 8000, 12000"),
        (media("kind: audio, container: webm, chunk_ms: 10, format: f32le"),
         "media.format: has no meaning for webm, which holds Opus"),
        (media('kind: audio, container: wav, chunk_ms: 10, frame: text, message: "{media.floats}"'),
         "media.message: {media.floats} is for audio of format"),
        (media("kind: audio, chunk_ms: 9, base64_prefix: x"), "media.base64_prefix: only text frames have it"),
        (media("kind: audio, chunk_ms: 9, also: {kind: frames}"),
         "media.also.frame: nobody could tell two binary media apart"),
        (media('kind: audio, chunk_ms: 9, also: {kind: audio, chunk_ms: 9, frame: text, message: "{media.base64}"}'),
         "media.also.kind: is that of the first medium"),
        (media("kind: audio, chunk_ms: 9, also: {kind: frames, frame: text, message: {a: 1}}"),
         "media.also.message: must hold {media.base64}, {media.floats} or {media.landmarks} exactly once, not 0"),
        (media("kind: audio, chunk_ms: 9, also: {kind: frames, frame: text}"),
         "media.also: text frames need a message"),
        (media('kind: audio, chunk_ms: 9, frame: text, message: "{media.base64}", also: {kind: frames, chunk_ms: 9}'),
         "media.also.chunk_ms: has no meaning for frames"),
        (media("late: drop_late, kind: frames, also: {kind: audio, chunk_ms: 9, frame: text, "
               'message: "{media.base64}"}'),
         "media.late: is for frames alone"),
        # pictures and video
        (media("kind: audio, chunk_ms: 9, slice_ms: 9"), "media.slice_ms: has no meaning for audio"),
        (media("kind: video, container: webm, slice_ms: 9, codec: h264"), "media.codec: has no meaning for video"),
        (media("kind: frames, codec: h264, quality: 9"), "media.quality: has no meaning for h264"),
        (media("kind: video, container: ogg, slice_ms: 9"), "media.container: ogg is for sound; allowed here: fmp4"),
        (media("kind: audio, container: fmp4, chunk_ms: 20"), "media.container: fmp4 is for video; allowed here: webm"),
        (media("kind: frames, crf: 23"), "media.crf: has no meaning for jpeg"),
        (media("kind: video, container: webm, slice_ms: 9, crf: 23"), "media.crf: has no meaning for webm"),
        (media("kind: video, container: file, pace: whole, fit: pad"), "media.fit: has no meaning for file"),
        (media("kind: video"), "media: video needs a container; allowed here: fmp4, webm, file"),
        (media("kind: video, container: webm"), "media: video needs slice_ms, the length of a slice, or pace: whole"),
        (media("kind: video, container: file"), "media.pace: a file is sent as it is; allowed here: whole"),
        (media("kind: video, container: fmp4, pace: whole, slice_ms: 9"), "media.slice_ms: a whole clip is one chunk"),
        (media("kind: video, container: fmp4, pace: whole, header: apart"), "media.header: a whole clip is one chunk"),
        (media("kind: frames, fit: pad, width: 9"), "media.fit: pad needs width and height"),
        (media("kind: frames, codec: rgb24, width: 9, height: 9"),
         "media.codec: rgb24 does not say how large a picture is: give width, height and fit: pad"),
        (media("kind: frames, codec: i420, width: 8, height: 9, fit: pad"), "media.height: must be even, for in i420"),
        (media("kind: video, container: webm, slice_ms: 9, width: 321"), "media.width: must be even, for in webm"),
        (media("kind: frames, codec: h264, crf: 23, bitrate_kbps: 9"), "media.crf: is a quality, and bitrate_kbps a"),
        (media("kind: frames, codec: h264, late: drop_late"), "media.late: pictures of h264 build on those before"),
        (media("kind: video, container: fmp4, slice_ms: 9, late: drop_late"), "media.late: pictures of fmp4 build on"),
        (media("kind: frames, also: {kind: video, container: fmp4, slice_ms: 9, frame: text, "
               'message: "{media.base64}"}'),
         "media.also.kind: is that of the first medium"),
        ("transport: {kind: process}\nend: [{done: {on: [close]}}]\n" + LINES + media("kind: frames"),
         "media: a program could not tell where one message ends: say transport.stdin: length"),
        (media("kind: video, container: webm, slice_ms: 9") + "\nend: [{silence_s: 1}]",
         "end[0].silence_s: pictures have no silence"),
        (media("kind: video, container: webm, slice_ms: 9") + "\npace: {chunk_ms_min: 100}",
         "media.slice_ms: a chunk of 9 ms is shorter than pace.chunk_ms_min, 100 ms"),
        ("pace: {chunk_ms_min: 150}", "media.chunk_ms: a chunk of 100 ms is shorter than pace.chunk_ms_min, 150 ms"),
        ("pace: {chunk_ms_max: 50}", "media.chunk_ms: a chunk of 100 ms is longer than pace.chunk_ms_max, 50 ms"),
        ("pace: {gap_s_max: 0.05}", "media.chunk_ms: a chunk of 100 ms leaves gaps of more than pace.gap_s_max"),
        ("pace: {realtime_factor_min: 2}", "pace.realtime_factor_min: media is sent in real time"),
        (receive("{has: a, event: done}", ", clock: {unit: ms}"), "receive.clock: names neither processed nor final"),
        (receive("{has: a, event: done}", ", decode: nested"), "receive.nested: decode: nested and the name"),
        (receive("{has: a, event: done}", ", decode: nested, nested: 'a[0]'"),
         "receive.nested: must be a field's name"),
        (receive("{has: a, event: done}", ", statuses: [{outcome: fatal}]"), "receive.statuses[0]: names no status"),
        (receive("{has: a, event: done}", ", statuses: [{status: [3], reason: '(', outcome: fatal}]"),
         "receive.statuses[0].reason: is no regular expression"),
        # signatures
        ('signed: {a: {md5: "{signed.b}"}, b: {md5: x}}',
         "signed.a.md5: {signed.b}: nothing is signed as b before; known here: none"),
        ('signed: {a: {md5: x}}\nopen: [{send_text: "{signed.b}"}]',
         "open[0].send_text: {signed.b}: nothing is signed as b before; known here: a"),
        ('signed: {a: {md5: "{captured.x}"}}', "signed.a.md5: {captured.x}: no such field"),
        ("signed: {a: {md5: x, quote: y}}", "signed.a: is exactly one of hmac, md5, base64, quote, text, sorted_query"),
        ("signed: {a: {quote: true}}", "signed.a.quote: must be a text"),
        ("signed: {a: {sorted_query: {b: c}, quote: x}}", "signed.a.quote: beside sorted_query it is true or false"),
        ("signed: {a: {hmac: sha1, key: k}}", "signed.a.message: hmac needs it"),
        ("signed: {a: {md5: x, as: hex}}", "signed.a.as: only hmac has it"),
        ("signed: {a: {hmac: sha3, key: k, message: m}}", "signed.a.hmac: 'sha3' is not known"),
        ("signed: {a: {md5: x, sha1: x}}", "signed.a.sha1: no such key"),
        # the prelude
        ("prelude: [{request: https://h/}]", "prelude[0].request: must be a method"),
        ('prelude: [{request: "POST ws://h/"}]', "prelude[0].request: must be a method"),
        ('prelude: [{request: "POST http://h/", json: {}, form: {}}]', "prelude[0].form: a request has one body"),
        ('prelude: [{request: "GET http://h/{captured.u}", capture: {u: u}}]',
         "prelude[0].request: {captured.u}: nothing before it captures u"),
        ('prelude: [{request: "GET http://h/", capture: {u: "u["}}]', "prelude[0].capture.u: 'u[' is no JMESPath"),
        ('prelude: [{request: "GET http://{host}/", capture: {u: u}}]\n'
         'transport: {kind: websocket, url: "{captured.u}"}',
         "prelude[0].request: {host}: is not known before the prelude has captured the address"),
        ('prelude: [{request: "GET http://h/", jsn: {}}]', "prelude[0].jsn: no such key; did you mean json?"),
        (receive("{like: {'a[': b}, event: done}"), "receive.rules[0].like.a[: 'a[' is no JMESPath"),
        (receive("{like: {a: '('}, event: done}"), "receive.rules[0].like.a: is no regular expression"),
        (receive("{has: a, event: done}", ", statuses: [{status: [403], before_output: true, outcome: fatal}]"),
         "receive.statuses[0].before_output: belongs to a close_code"),
        # branches, and what is owed
        ("open: [{send_text: a, when: {field: captured.b, equals: x}}]",
         "open[0].when.field: captured.b: nothing before it captures b"),
        ("open: [{send_text: a, when: {field: host, equals: x, differs: y}}]",
         "open[0].when: compares with exactly one of equals, differs"),
        ("open: [{when: {field: host, equals: x}}]", "open[0]: a step is exactly one of"),
        ("open: [{send_text: a, when: {field: host, equals: true}}]", "open[0].when.equals: must be a text, not True"),
        ("open: [{send_text: '{utterance.uuid}'}]", "open[0].send_text: {utterance.uuid}: no such field"),
        ("begin: [{send_text: '{count.acked}'}]", "begin[0].send_text: {count.acked}: no such field"),
        ("end: [{silence_s: 1, when: {field: host, equals: x}}]", "end[0].when: silence is added to the media"),
        ("end: [{done: {}}, {done: {}, when: {field: host, equals: x}}]", "end[1].done: there is a done step before"),
        ("end: [{done: {on: [settled]}}]", "end[0].done.on: no message settles anything"),
        (receive("{has: a, event: pending}"), "receive.rules[0].key: event: pending and event: settled need it"),
        (receive("{has: a, event: done, key: b}"), "receive.rules[0].key: event: pending and event: settled need it"),
        ("never_final: {rule: promote_on_quiet}", "never_final.quiet_s: belongs to rule: promote_on_quiet"),
        ("never_final: {quiet_s: 1}", "never_final.quiet_s: belongs to rule: promote_on_quiet"),
        ("keepalive: {every_s: 3}", "keepalive: sends exactly one of send_json, send_text"),
        ("keepalive: {every_s: 3, send_text: a, send_binary: b}", "keepalive: sends exactly one of"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_sentence(extra: str, problem: str) -> None:
    sentences = told(extra)
    assert len(sentences) == 1, sentences
    assert sentences[0].startswith(problem)


def test_what_the_schema_refuses_already_breaks_no_check() -> None:
    """Every section with a wrong type, and values of wrong types inside: complaints, and no exception."""
    for wrong in ("3", "[1]", "{a: [1]}", "text", "null"):
        for section in (
            "transport",
            "media",
            "receive",
            "open",
            "end",
            "channels",
            "pace",
            "keepalive",
            "params",
            "close",
        ):
            told(f"{section}: {wrong}")
    assert told(text("model: [1], text: {a: 1}, min_confidence: x"))
    assert told(receive("3, [1], {has: {}, match: 3, text: 3, statuses: 3}"))
    assert told(media("kind: audio, chunk_ms: [1], chunk_bytes: x, rate_hz: y, fps: z, frame: text, message: 3"))
