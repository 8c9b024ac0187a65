"""Stages: a step with a name, inputs, a budget and a log.

A stage whose inputs are those of its last success, and whose result is still there, is not
run again. Two `lab` commands at once wait for each other here, stage by stage.
"""

import contextlib
import fnmatch
import hashlib
import os
import subprocess
import time

from skualab.host import failure, paths, say, secrets
from skualab.host.lock import held
from skualab.host.say import LabError
from skualab.roots import apt

times = []      # (name, seconds, made anew) of this command, for the summary


class Tree:
    """An input: a tree without the files and directories whose names match one of some patterns of the shell."""

    def __init__(self, path, *without):
        self.path, self.without = path, without

    def __str__(self):
        return self.path

    def has(self, path):
        """Whether a file, which may be gone, is the tree itself or in it."""
        if not (path + '/').startswith(self.path + '/'):
            return False
        names = os.path.relpath(path, self.path).split('/')
        return not any(fnmatch.filter(names, pattern) for pattern in self.without)


def tree(given):
    """An input as a tree."""
    return given if isinstance(given, Tree) else Tree(str(given))


def digest(*inputs):
    """A hash of strings and of files and trees (absolute paths that exist): names and content.

    Where the repository and its build directory are does not matter: what was made in one tree
    is current in a copy of it."""
    total = hashlib.sha256()
    for given in map(tree, inputs):
        text = given.path
        total.update(text.replace(paths.BUILD, 'build').replace(paths.REPO, '.').encode() + b'\0')
        if os.path.isabs(text) and os.path.exists(text):
            for path in filter(given.has, _files(text)):
                total.update(os.path.relpath(path, paths.REPO).encode() + b'\0')
                with open(path, 'rb') as file:
                    total.update(hashlib.sha256(file.read()).digest())
    return total.hexdigest()


def content(path):
    """An input for digest: what a file says, wherever it stands."""
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def _files(path):
    if os.path.isfile(path):
        return [path]
    found = []
    for where, directories, names in os.walk(path):
        directories[:] = sorted(name for name in directories
                                if name not in ('__pycache__', '.git', 'build'))
        found += [os.path.join(where, name) for name in sorted(names)
                  if os.path.isfile(os.path.join(where, name))]
    return found


class Stage:
    """`make(log)` does the work; `inputs()` says what it depends on; `result` is a path it makes. The budget
    does not hold for `before(log)`, which comes first."""

    def __init__(self, name, make, inputs, result, budget, before=None):
        self.name, self.make, self.inputs = name, make, inputs
        self.result, self.budget, self.before = result, budget, before
        self.log = os.path.join(paths.LOGS, name + '.log')
        self.stamp = os.path.join(paths.STAMPS, name)

    def current(self, hashed):
        try:
            return os.path.exists(self.result) and open(self.stamp).read() == hashed
        except OSError:
            return False

    def is_current(self):
        return self.current(digest(*self.inputs()))

    def prepare(self, log):
        """Only what comes first, for whoever needs no more, and unless the result is up to date."""
        if not self.is_current():
            self.before(log)

    def run(self):
        """Bring the result up to date. True if it was made anew."""
        os.makedirs(paths.STAMPS, exist_ok=True)
        os.makedirs(paths.LOGS, exist_ok=True)
        start = time.monotonic()
        with held(self.stamp + '.lock', 'makes %s' % self.name):
            hashed = digest(*self.inputs())
            if self.current(hashed):
                times.append((self.name, 0.0, False))
                return False
            # What is half made and what was there before are not what the stamp says.
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.stamp)
            self._make_anew()
            with open(self.stamp, 'w') as file:
                file.write(hashed)
        took = time.monotonic() - start
        times.append((self.name, took, True))
        say.line('%s took %s' % (self.name, say.seconds(took)))
        return True

    def _make_anew(self):
        with open(self.log, 'w') as log:
            try:
                if self.before:
                    with say.Progress(self.name, self.log, told=apt.Arrival()):
                        self.before(log)
                say.line('%s takes at most %d s' % (self.name, self.budget))
                with say.Progress(self.name, self.log, self.budget):
                    self.make(log)
            except subprocess.CalledProcessError as error:
                raise LabError('%s: %s' % (self.name, failure.cause(self.log) or failure.unknown(self.log, error.returncode))
                               ) from None
            except subprocess.TimeoutExpired:
                raise LabError('%s took more than %d s; its log is %s; run the command again when this machine has less '
                               'to do' % (self.name, self.budget, self.log)) from None
            finally:
                secrets.hide_in(self.log)
