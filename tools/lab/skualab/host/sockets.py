"""Directories for sockets. They are in /tmp, since the path of a socket may have 107 bytes only.

Whoever makes one has a lock on it. What a lab left that was killed has none, and goes when another is made.
"""

import fcntl
import glob
import os
import shutil
import tempfile

WHERE = '/tmp'
PREFIX = 'skua-lab-'
_locks = {}         # descriptors, by path


def _lock(path):
    """A descriptor that holds the lock; None where somebody else has it, or has removed the directory."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def new_place():
    prune()
    while True:
        path = tempfile.mkdtemp(prefix=PREFIX, dir=WHERE)
        descriptor = _lock(path)
        # Another lab may have taken it, in between, for one that was left.
        if descriptor is not None:
            _locks[path] = descriptor
            return path


def remove_place(path):
    shutil.rmtree(path, ignore_errors=True)
    if path in _locks:
        os.close(_locks.pop(path))


def prune():
    """Remove what labs of this user left."""
    for path in glob.glob(os.path.join(WHERE, PREFIX + '*')):
        try:
            if os.lstat(path).st_uid != os.geteuid():
                continue
        except OSError:
            continue
        descriptor = _lock(path)
        if descriptor is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(descriptor)
