"""A speech-to-text server of another package, which takes uploads in OpenAI's way: `python upload_service.py PORT`.

For an interpreter of its own, in which `pip install bootlegger-voice==0.1.2 moonshine-voice==0.1.0` was run. The server
would fetch a model; the one that lies in the recogniser's own package is used instead. Without a port it says where
that package's recordings are.
"""

import sys
from pathlib import Path

import moonshine_voice

ASSETS = Path(moonshine_voice.__file__).parent / "assets"


def main() -> None:
    """Serve on loopback until ended."""
    if len(sys.argv) < 2:
        print(ASSETS)
        return
    bundled = (str(ASSETS / "tiny-en"), moonshine_voice.ModelArch.TINY)
    moonshine_voice.get_model_for_language = lambda *_, **__: bundled

    import uvicorn
    from bootlegger.config import Settings
    from bootlegger.main import create_app

    uvicorn.run(create_app(Settings()), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")


if __name__ == "__main__":
    main()
