"""What a release is made of agrees with itself, and continuous integration with the Makefile."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import transferable

yaml = pytest.importorskip("yaml", reason="needs PyYAML, of the extra test")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
RELEASE = runpy.run_path(str(ROOT / ".ci" / "release.py"))
SCHEMAS = {
    "citation-file-format": ["CITATION.cff"],
    "github-workflows": [f".github/workflows/{path.name}" for path in WORKFLOWS],
    "github-issue-forms": [".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/idea.yml"],
    "github-issue-config": [".github/ISSUE_TEMPLATE/config.yml"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_follow_their_schema(schema):
    """By the schemas that check-jsonschema ships: nothing is fetched."""
    pytest.importorskip("check_jsonschema", reason="needs check-jsonschema, of the extra test")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, *SCHEMAS[schema]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_version_is_told_alike_everywhere():
    script = [sys.executable, str(ROOT / ".ci" / "release.py")]
    env = {name: value for name, value in os.environ.items() if name != "TAG"}
    assert subprocess.run(script, env=env, capture_output=True).returncode == 0
    assert any("tag" in problem for problem in RELEASE["problems"]("v0.0.0"))
    cited = yaml.safe_load(ROOT.joinpath("CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == transferable.__version__


def commands(workflow):
    """Every command that a workflow runs."""
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_workflows_run_targets_of_the_makefile():
    makefile = ROOT.joinpath("Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.M))
    run = [command for workflow in WORKFLOWS for command in commands(workflow)]
    assert {"make test", "make test-minimum", "make docs", "make dist"} <= set(run)
    for command in run:
        assert re.fullmatch(r"make [a-z-]+", command), command
        assert command.removeprefix("make ") in targets, command


def test_every_python_that_is_declared_is_tested():
    (tests,) = (path for path in WORKFLOWS if path.stem == "tests")
    jobs = yaml.safe_load(tests.read_text(encoding="utf-8"))["jobs"]
    pythons = jobs["newest"]["strategy"]["matrix"]["python"]
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert set(classified) <= set(pythons)
    assert f">={pythons[0]}" == PROJECT["requires-python"]


def test_the_recipe_mirrors_the_dependencies():
    recipe = ROOT.joinpath("recipe", "meta.yaml").read_text(encoding="utf-8")
    rendered = re.sub(r"{{.*?}}", "x", re.sub(r"^{%.*%}$", "", recipe, flags=re.M))
    required = yaml.safe_load(rendered)["requirements"]["run"]
    renamed = {"matplotlib": "matplotlib-base"}  # conda's has no graphical toolkit
    declared = [("python", PROJECT["requires-python"])]
    declared += [
        re.fullmatch(r"([\w.-]+)(>=.+)", line).groups() for line in PROJECT["dependencies"]
    ]
    assert sorted(required) == sorted(
        f"{renamed.get(name, name)} {bound}" for name, bound in declared
    )


def test_the_image_has_the_extras_it_asks_for():
    image = ROOT.joinpath("Dockerfile").read_text(encoding="utf-8")
    (extras,) = re.findall(r'"/library\[(.+)\]"', image)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert 'CMD ["demo"]' in image
