"""Compile the kernels when a wheel is built; without a compiler, it is pure Python."""

from __future__ import annotations

import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILD = Path("src", "hybridmix", "_kernels", "build.py")


class CustomBuildHook(BuildHookInterface):
    """Add the compiled kernels to a wheel, if they can be built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; the wheel of what is compiled fits any Python on this platform."""
        module = runpy.run_path(str(Path(self.root) / BUILD))
        problem = module["build"]()
        if problem is not None:
            self.app.display_warning(f"No compiled kernels, NumPy is used: {problem}.")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        library = module["LIBRARY"].relative_to(Path(self.root).resolve())
        build_data["artifacts"].append(f"/{library.as_posix()}")
