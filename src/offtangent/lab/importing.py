"""A user's file and the modules beside it, loaded as they are now and kept apart from those of other files.

Python keeps one module of a name for a whole process. But two experiments may each have a helper.py beside them, and
one may change while a worker or a notebook lives on: then one would run the other's code, under the name of its own.
So what lies beside an experiment belongs to it, and stands in `sys.modules` only while the experiment's code runs.
"""

import hashlib
import importlib.util
import itertools
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from offtangent._errors import InputError
from offtangent.lab.sources import content_of
from offtangent.lab.watches import watching

INSTALLED = frozenset(("site-packages", "dist-packages"))


@dataclass(eq=False)
class Loaded:
    """One file as it was when it was loaded, and what it has imported from beside it."""

    module: ModuleType
    path: Path
    beside: frozenset[str]  # top-level names that the file's folder has modules for
    own: dict[str, ModuleType] = field(default_factory=dict)  # what was imported from there
    contents: dict[Path, bytes] = field(default_factory=dict)  # checksums of the files as they were then
    opened: set[str] = field(default_factory=set)  # data that was read while the file was loaded
    _users: int = 0
    _hidden: dict[str, ModuleType] = field(default_factory=dict)
    _count: int = 0

    @property
    def is_current(self) -> bool:
        """Whether the files are still what was loaded."""
        return all(content_of(path) == content for path, content in self.contents.items())

    def check(self, files: Mapping[Path, bytes]) -> None:
        """Refuse to go on where files that were read since are not what was loaded."""
        for path, content in files.items():
            if self.contents.get(path, content) != content:
                raise InputError(f"{path} changed while it was being read. Run the same command again.")

    @contextmanager
    def at_home(self) -> Iterator[None]:
        """What is imported in here comes from beside the file first, and is kept for it alone."""
        with _LOCK:
            self._users += 1
            if self._users == 1:
                self._enter()
        try:
            yield
        finally:
            with _LOCK:
                self._users -= 1
                if self._users == 0:
                    self._leave()

    def _enter(self) -> None:
        sys.path.insert(0, str(self.path.parent))
        for top in self.beside:
            if top in sys.modules and not _is_installed(sys.modules[top]):
                for name in [one for one in sys.modules if one == top or one.startswith(f"{top}.")]:
                    self._hidden[name] = sys.modules.pop(name)
        sys.modules.update(self.own)
        self._count = len(sys.modules)

    def _leave(self) -> None:
        if len(sys.modules) != self._count:
            importlib.invalidate_caches()
            for name, module in list(sys.modules.items()):
                if name.partition(".")[0] in self.beside and name not in self.own and not _is_installed(module):
                    self.own[name] = module
                    if file := getattr(module, "__file__", None):
                        self.contents[Path(file)] = content_of(Path(file))
        for name in self.own:
            sys.modules.pop(name, None)
        sys.modules.update(self._hidden)
        self._hidden.clear()
        sys.path.remove(str(self.path.parent))


_LOADED: dict[Path, Loaded] = {}
_LOCK = threading.RLock()
_NUMBER = itertools.count()


def load(path: Path) -> Loaded:
    """The file as it is now: what was loaded before if nothing of it has changed since."""
    known = _LOADED.get(path)
    if known is not None and known.is_current:
        return known
    content = path.read_bytes()
    name = f"offtangent_user_{hashlib.sha256(str(path).encode() + content).hexdigest()[:12]}_{next(_NUMBER)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    loaded = Loaded(importlib.util.module_from_spec(spec), path, _beside(path.parent))
    loaded.contents[path] = hashlib.sha256(content).digest()
    sys.modules[name] = loaded.module  # dataclasses look their module up by name
    try:
        with loaded.at_home(), watching(path.parent) as watch:
            # What was read is run: the file's bytecode may be of an older one.
            exec(compile(content, path, "exec"), loaded.module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    loaded.opened = watch.opened
    _LOADED[path] = loaded
    return loaded


def _beside(folder: Path) -> frozenset[str]:
    """The top-level names that Python would find in a folder."""
    try:
        found = list(folder.iterdir())
    except OSError:
        return frozenset()
    names = {path.stem if path.suffix == ".py" else path.name for path in found}
    return frozenset(name for name in names if name.isidentifier()) - {"offtangent", "__main__", "__init__"}


def _is_installed(module: ModuleType) -> bool:
    """Whether a module is Python's own or an installed package's: those are everybody's."""
    file = getattr(module, "__file__", None)
    if file is None:
        places = [str(place) for place in getattr(module, "__path__", ())]  # a folder without __init__.py
        return not places or any(INSTALLED & set(Path(place).parts) for place in places)
    return bool(INSTALLED & set(Path(file).parts)) or module.__name__.partition(".")[0] in sys.stdlib_module_names
