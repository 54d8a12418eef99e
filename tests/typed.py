"""A command as it is typed, for those that run no engine: within this process, which has loaded everything already.

That a process of its own ends the same way is for the tests that use `tests.test_main_job.loadbench`.
"""

import contextlib
import io
from pathlib import Path
from unittest import mock

from loadbench import cli


def typed(*words: str, cwd: Path) -> tuple[int, str, str]:
    """Exit code, output, errors. What a user would see as a traceback is raised."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch("sys.argv", ["loadbench", *words]),
    ):
        code = cli.main()
    return code, out.getvalue(), err.getvalue()
