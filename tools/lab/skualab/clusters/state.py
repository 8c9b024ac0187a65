"""Where clusters live: build/clusters/NAME, with what others have to know of it in `state`.

The process that holds a cluster has a lock on build/clusters/NAME.lock. So what a state says is true while the lock is
held, and what remains of a cluster that was killed is known by its lock, which nobody holds.
"""

import contextlib
import fcntl
import glob
import json
import os
import re
import shutil

from skualab.host import paths
from skualab.host.say import LabError

WHERE = os.path.join(paths.BUILD, 'clusters')
DEFAULT = 'cluster'
NAME = r'[a-z][a-z0-9-]{0,30}'


class Cluster:
    def __init__(self, name):
        if not re.fullmatch(NAME, name):
            raise LabError("the name of a cluster '%s' must be a letter, and up to 30 letters, digits and - (a-z0-9-)"
                           % name)
        self.name = name
        self.directory = os.path.join(WHERE, name)
        self.state = os.path.join(self.directory, 'state')
        self.result = os.path.join(self.directory, 'result.json')
        self.lock = self.directory + '.lock'

    def told(self):
        return os.path.relpath(self.directory)

    def hold(self):
        """A descriptor that holds the lock; None where another process has it."""
        os.makedirs(WHERE, exist_ok=True)
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def held(self):
        if not os.path.exists(self.lock):
            return False
        descriptor = self.hold()
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is None

    def clear(self):
        """Begin anew. Only who holds the lock may."""
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)

    def write(self, state):
        with open(self.state + '.new', 'w') as file:
            json.dump(state, file, indent=1)
            file.write('\n')
        os.rename(self.state + '.new', self.state)

    def close(self, state):
        """All of it has ended: leave what became of it as its result."""
        self.write(state)
        os.rename(self.state, self.result)

    def read(self):
        """What is known of it, or None."""
        with contextlib.suppress(FileNotFoundError), open(self.state) as file:
            return json.load(file)
        return None

    def sign(self):
        """We are the process that holds it."""
        with open(self.lock, 'w') as file:
            file.write('%d\n' % os.getpid())

    def pid(self):
        """Of the process that holds it."""
        with open(self.lock) as file:
            return int(file.read() or 0)


def known():
    """(names of clusters that are held, names of those of which only a state is left)"""
    held = [name for name in (os.path.basename(path)[:-5] for path in sorted(glob.glob(WHERE + '/*.lock')))
            if Cluster(name).held()]
    left = [os.path.basename(os.path.dirname(path)) for path in sorted(glob.glob(WHERE + '/*/state'))]
    return held, [name for name in left if name not in held]


def choose(name=None):
    """The cluster of that name, or the only one that is up, or that was killed."""
    held, left = known()
    names = held or left
    if name in held + left:
        return Cluster(name)
    told = 'up: %s' % ', '.join(held) if held else 'no cluster is up; lab up boots one'
    if name:
        raise LabError("no cluster '%s' is up; %s" % (name, told))
    if len(names) > 1:
        raise LabError('several clusters are there: %s; choose one by its name' % ', '.join(names))
    if not names:
        raise LabError(told)
    return Cluster(names[0])
