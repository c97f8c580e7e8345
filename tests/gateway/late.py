"""Large modules that tests load when they run: each worker collects every file, and few of them run these."""

import importlib
from types import ModuleType


class Late(ModuleType):
    """A module by its name, loaded by the first look into it: not by pytest's, which asks for private names."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)
