"""A real recogniser as a local program, of somebody who has never heard of loadbench: samples in, lines of JSON out.

16 kHz mono s16le on standard input, `{"ready": true}` when the model has loaded, then `{"partial": TEXT}` and
`{"final": TEXT}`, and the end when the input ends.
"""

import array
import json
import sys
from typing import Any

from moonshine_voice import ModelArch, Transcriber, get_model_path


def say(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def heard(event: Any) -> None:
    kind = type(event).__name__
    if kind == "LineTextChanged":
        say(partial=event.line.text.strip())
    elif kind == "LineCompleted":
        say(final=event.line.text.strip())


def main() -> None:
    model = Transcriber(str(get_model_path("tiny-en")), ModelArch.TINY)
    stream = model.create_stream(update_interval=0.5)
    stream.add_listener(heard)
    stream.start()
    print("model loaded", file=sys.stderr, flush=True)
    say(ready=True)
    odd = b""
    while data := sys.stdin.buffer.read1(65_536):
        data = odd + data
        even = len(data) - len(data) % 2
        odd, data = data[even:], data[:even]
        stream.add_audio([sample / 32768 for sample in array.array("h", data)], 16_000)
    stream.stop()
    stream.close()


if __name__ == "__main__":
    main()
