"""Check what a release would hand out: build it, look into it, and run the demo from it in an empty environment.

``make release-check`` calls this. It needs the extra ``release`` and some minutes; nothing is uploaded.
"""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ("peers", "pyepo", "flower", "torch")
"""Parts of file names that only the scripts of our peers have. They measure; they are not part of the library."""


def main() -> None:
    """Run every check; the first that fails ends with its reason."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, version = checked("dffl", ROOT, folder)
        studies, studies_version = checked("dffl_studies", ROOT / "studies", folder)
        require(studies_version == version, f"dffl-studies is {studies_version}, dffl {version}: release both together")
        check_demo(wheel, studies, version, folder)
    print(f"dffl and dffl-studies {version}: wheels and sdists are complete, and the demo runs from the wheel of dffl alone")


def checked(package: str, root: Path, folder: Path) -> tuple[Path, str]:
    """The wheel of a distribution and its version, after a look into what was built."""
    place = folder / package
    run("-m", "build", "--outdir", place, root)
    [wheel], [sdist] = place.glob("*.whl"), place.glob("*.tar.gz")
    run("-m", "twine", "check", "--strict", wheel, sdist)
    check_contents(package, root, wheel, sdist)
    return wheel, check_metadata(wheel)


def run(*arguments: object, python: Path | str = sys.executable, cwd: Path | None = None) -> str:
    """What a Python command prints; its own output and a non-zero exit if it fails."""
    done = subprocess.run([str(python), *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def check_contents(package: str, root: Path, wheel: Path, sdist: Path) -> None:
    """The wheel holds every file of the package and nothing else; the sdist is complete, and neither holds peers' scripts."""
    built = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    listed = subprocess.run(["git", "ls-files", package], cwd=root / "src", capture_output=True, text=True, check=True)
    there = set(listed.stdout.split())
    require(built == there, f"the wheel differs from what is committed in src/{package}: {sorted(built ^ there)[:5]}")
    with tarfile.open(sdist) as archive:
        source = {name.partition("/")[2] for name in archive.getnames()}
    lacking = {f"src/{name}" for name in there} | {"README.md", "LICENSE", "pyproject.toml"}
    lacking |= {"CHANGELOG.md", "CITATION.cff"} if package == "dffl" else set()
    require(lacking <= source, f"the sdist lacks {sorted(lacking - source)[:5]}")
    for name in [*built, *source]:
        require(not any(part in name.lower() for part in PEERS), f"{name} is a script of a peer and must not be handed out")


def check_metadata(wheel: Path) -> str:
    """The version, after a look at the metadata that an index would show."""
    with zipfile.ZipFile(wheel) as archive:
        [place] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        found = email.message_from_bytes(archive.read(place))
    version = found["Version"]
    for field in ("Summary", "Requires-Python", "License-Expression", "License-File", "Keywords", "Classifier"):
        require(bool(found[field]), f"the metadata has no {field}")
    require(" @ " not in str(found.get_all("Requires-Dist")), "a dependency is an address, not a version")
    changes, cited = ((ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
    exact = re.escape(version)
    section = re.search(rf"^## {exact}(?![\w.])(.*)$", changes, flags=re.MULTILINE)
    require(section is not None, f"CHANGELOG.md has no section {version}")
    if section is not None and "not yet released" in section[1]:
        print(f"CHANGELOG.md: write the date of {version} before you release it")
    require(bool(re.search(rf'^version: "?{exact}"?$', cited, flags=re.MULTILINE)), f"CITATION.cff does not name {version}")
    return version


def check_demo(wheel: Path, studies: Path, version: str, folder: Path) -> None:
    """The wheel alone, in an empty environment, says its version and runs the demo; with the studies it has their commands."""
    place = folder / "empty"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, python=python)
    said = run("--version", python=place / "bin" / "dffl", cwd=folder)
    require(said.split() == ["dffl", version], f"dffl --version says {said!r}")
    home = run("-c", "import dffl; print(dffl.__file__)", python=python, cwd=folder)
    require(home.startswith(str(place)), f"dffl was imported from {home}, not from the wheel")
    shown = run("-m", "dffl", "demo", python=python, cwd=folder)
    require("clients harmed" in shown and "Next, try:" in shown, "the demo did not show its tables")
    require("dffl-studies" not in run("--help", python=place / "bin" / "dffl", cwd=folder), "dffl alone lists studies")
    run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", studies, python=python)
    require("dffl-studies" in run("--help", python=place / "bin" / "dffl", cwd=folder), "the studies add no commands")
    require((folder / "dffl-demo.png").stat().st_size > 20_000, "the demo drew no picture")


def require(holds: bool, reason: str) -> None:
    """End with the reason, unless it holds."""
    if not holds:
        sys.exit(f"release check: {reason}")


if __name__ == "__main__":
    main()
