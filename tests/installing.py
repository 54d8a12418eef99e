"""A package of plug-ins installed into a folder, from a wheel as its build backend would make it."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path


def installed(example: Path, folder: Path) -> Path:
    """The folder into which the one module beside `pyproject.toml` in `example` was installed."""
    project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    module = str(project["name"]).replace("-", "_")
    info = f"{module}-{project['version']}.dist-info"
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in found.items())
        for group, found in project["entry-points"].items()
    )
    wheel = folder / f"{module}-{project['version']}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write(example / f"{module}.py", f"{module}.py")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/entry_points.txt", points)
        file.writestr(f"{info}/RECORD", "")
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(folder)]
    subprocess.run([*words, str(wheel)], check=True)
    return folder
