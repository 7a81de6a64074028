"""The wheel, installed where nothing else is, and the sdist."""

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command, cwd, code=0):
    """Run a command as somebody would who has never seen the checkout."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True
    )
    if done.returncode and "connection broken" in done.stderr:
        pytest.skip("needs a package index: pip could not connect to one")
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


@pytest.mark.processes
def test_wheel_runs_the_demo_in_an_empty_environment(tmp_path):
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", ROOT, "--no-deps", "--wheel-dir", tmp_path, cwd=tmp_path)
    (wheel,) = tmp_path.glob("transferable-*.whl")
    packed = zipfile.ZipFile(wheel).namelist()
    assert "transferable/py.typed" in packed
    assert {name.split("/")[0].split("-")[0] for name in packed} == {"transferable"}

    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    run(*pip, "--python", scripts / "python", "install", "--no-compile", wheel, cwd=tmp_path)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    record = json.loads(run(scripts / "transferable", "demo", "--json", cwd=elsewhere))
    assert Path(record["picture"]) == elsewhere / "transferable-demo.png"
    assert Path(record["picture"]).stat().st_size > 10_000
    accuracy = {result["method"]: result["accuracy"] for result in record["results"]}
    assert min(accuracy["AutoAdapter"], accuracy["TFDF"]) > accuracy["SVM"]

    # The README shows what the demo prints; half a point is left to other linear algebra.
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^│ (\S+) .*│ +([\d.]+)% │", readme, flags=re.MULTILINE))
    assert shown.keys() == accuracy.keys()
    for method, percent in shown.items():
        assert abs(float(percent) - 100 * accuracy[method]) < 0.5, method

    # The paper's tables come with the sdist.
    run(*pip, "--python", scripts / "python", "install", "hatchling", cwd=tmp_path)
    build = (scripts / "python", "-m", "hatchling", "build", "--target", "sdist")
    run(*build, "--directory", tmp_path, cwd=ROOT)
    (sdist,) = tmp_path.glob("transferable-*.tar.gz")
    with tarfile.open(sdist) as archive:
        carried = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"paper/{path.name}" for path in (ROOT / "paper").glob("*.*")} <= carried
    assert not any("__pycache__" in name for name in carried)
