"""One at a time, of labs and of the stages of one, where two would be in each other's way; who waits says so."""

import contextlib
import fcntl
import os

from skualab.host import say


@contextlib.contextmanager
def held(path, what):
    """what: what the other one does, if there is one."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say.line('waiting for another process, which %s' % what)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
