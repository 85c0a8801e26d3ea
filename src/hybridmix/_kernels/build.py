"""Compile the kernels, if there is a compiler.

``python -m hybridmix._kernels.build`` does so for an installation that lacks them. The
build of wheels runs this file by itself: it imports nothing but the standard library.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
LIBRARY = FOLDER / ("kernels.dll" if sys.platform == "win32" else "kernels.so")

# Without the two about mathematics, a square root would be a call of a function that sets
# errno instead of one instruction for a whole vector. Neither changes a result.
_FLAGS = (
    "-std=gnu11 -O3 -fPIC -shared -fvisibility=hidden "
    "-fno-math-errno -fno-trapping-math -Wall -Wextra"
)


def build() -> str | None:
    """Compile; return None, or why there are no kernels. An old library is removed."""
    LIBRARY.unlink(missing_ok=True)
    compiler = _compiler()
    if compiler is None:
        return "no C compiler was found (CC is not set; no cc, gcc or clang)"
    # The new library gets its name when it is complete: processes that load it, or are
    # building it at the same time, never see half of one.
    unfinished = LIBRARY.with_suffix(f".{os.getpid()}")
    command = [*compiler, *_FLAGS.split(), "kernels.c", "-o", str(unfinished), "-lm"]
    try:
        subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, text=True)
        unfinished.replace(LIBRARY)
    except OSError as error:
        return f"{compiler[0]} could not be run: {error}"
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["no message"]
        return f"{compiler[0]} failed: {lines[0]}"
    finally:
        unfinished.unlink(missing_ok=True)
    return None


def _compiler() -> list[str] | None:
    """Return the command of the C compiler; the variable CC decides, if it is set."""
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        return named
    found = (shutil.which(name) for name in ("cc", "gcc", "clang"))
    return next(([path] for path in found if path is not None), None)


if __name__ == "__main__":
    problem = build()
    print(problem or f"built {LIBRARY}")
    sys.exit(0 if problem is None else 1)
