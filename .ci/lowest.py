"""Print the lowest version that pyproject.toml allows of everything, as constraints for pip."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
wanted = project["dependencies"] + [line for name in sys.argv[1:] for line in extras[name]]
for requirement in wanted:
    name, bound = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?[>=]=([\w.]+)", requirement).groups()
    print(f"{name}=={bound}")
