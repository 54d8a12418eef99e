"""C programs of this folder, compiled when first asked for and kept under `.bench/` by their content."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
KEPT = HERE.parent / ".bench"


def built(name: str) -> Path:
    """The program of `name`.c; SystemExit with one line where there is no C compiler or it refuses."""
    sources = [HERE / f"{name}.c", HERE / "handshake.h"]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    program = KEPT / f"{name}-{digest}"
    if program.exists():
        return program
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("the benchmarks need a C compiler (cc, gcc or clang), and libc's headers")
    KEPT.mkdir(exist_ok=True)
    fresh = program.with_suffix(f".{os.getpid()}")
    made = subprocess.run([compiler, "-O2", "-o", str(fresh), str(sources[0])], capture_output=True, text=True)
    if made.returncode:
        raise SystemExit(f"{name}.c does not compile with {compiler}: {made.stderr.strip().splitlines()[0]}")
    fresh.rename(program)
    return program
