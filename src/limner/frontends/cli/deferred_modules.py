"""Names of modules -> modules that are executed when something of them is first used.

`asyncio` imports TLS and `inspect` with everything below them. Most commands end without either,
and a server needs them long after its first answer. An import of a deferred module finds it and
binds its name as usual; its code runs when the first attribute is read, set or listed.

This is `importlib.util.LazyLoader` with two differences. A second import statement reads the
`__spec__` of a module, and is no use of it. And in every Python, all other threads wait until the
whole code has run: LazyLoader let them see a half of it before 3.11.9 and 3.12.3.
"""

from __future__ import annotations

import sys
from _thread import RLock
from importlib.machinery import FrozenImporter, PathFinder
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec


# One for all, because one of these modules uses another while it is executed. Reentrant, because
# a module may look itself up while it is executed.
_LOCK = RLock()


class DeferredModule(ModuleType):
    """A module that was found and not executed. It becomes a plain module when it is used."""

    def __getattribute__(self, name: str) -> object:
        if name != "__spec__":
            _execute(self)
        return ModuleType.__getattribute__(self, name)  # by now `self` is no DeferredModule

    def __setattr__(self, name: str, value: object) -> None:
        _execute(self)
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _execute(self)
        ModuleType.__delattr__(self, name)


class _DeferringLoader:
    """Leaves a module to its first use, and then to the loader that Python found for it."""

    def __init__(self, found: Loader) -> None:
        self.found = found
        self.is_executing = False

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.found.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = DeferredModule


class _DeferringFinder:
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._names:
            return None
        # `ntpath` is in the interpreter itself.
        spec = FrozenImporter.find_spec(name) or PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            # It has all that Python calls of a loader; to inherit would load `importlib.abc`.
            spec.loader = _DeferringLoader(spec.loader)  # pyright: ignore[reportAttributeAccessIssue]
        return spec


def defer(*names: str) -> None:
    """Execute these modules on first use, if they are imported from now on. Once per process."""
    sys.meta_path.insert(0, _DeferringFinder(frozenset(names)))


def _execute(module: DeferredModule) -> None:
    with _LOCK:
        if type(module) is not DeferredModule:
            return  # another thread has executed it in the meantime
        spec: ModuleSpec = object.__getattribute__(module, "__spec__")
        loader = spec.loader
        if not isinstance(loader, _DeferringLoader) or loader.is_executing:
            return  # this thread executes it right now
        loader.is_executing = True
        try:
            module.__loader__ = spec.loader = loader.found
            loader.found.exec_module(module)
        except BaseException:
            module.__loader__ = spec.loader = loader
            raise
        finally:
            loader.is_executing = False
        object.__setattr__(module, "__class__", ModuleType)
