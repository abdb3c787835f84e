"""One file or folder for each mechanism: its law, faults, theorems, audit statistic and noise, registered at its end.

Every module of this folder is imported, so that a new mechanism needs no line in any other file.
"""

from __future__ import annotations

import importlib
import pkgutil

for _room in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_room.name)
