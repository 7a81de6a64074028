"""Import of the paper's tables and figures from ``paper`` beside ``src``, not installed.

Their modules are imported as ``transferable._paper.plans``, so that no other package called
``paper`` is taken for them and worker processes find them by the same name.
"""

from pathlib import Path


def _find() -> list[str]:
    """Return the folder of the modules, if this package is that of the project's source tree."""
    source = Path(__file__).resolve().parents[1]
    folder = source.parent / "paper"
    try:
        project = (source.parent / "pyproject.toml").read_bytes()
    except OSError:
        return []
    ours = source.name == "src" and b'name = "transferable"' in project
    return [str(folder)] if ours and (folder / "__init__.py").is_file() else []


__path__ = _find()  # makes a package of this module
