"""Processes that do not outlive the lab: each has a keeper (keeper.py)."""

import os
import subprocess
import sys

KEEPER = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'keeper.py')


def popen(command, fds=(), flags=(), **how):
    """A Popen of a command that does not outlive us: (Popen, the end of the pipe that has to stay open)."""
    theirs, ours = os.pipe()
    try:
        return subprocess.Popen([sys.executable, '-I', '-S', '-B', KEEPER, str(theirs), ','.join(flags) or '-',
                                 *command], pass_fds=[*fds, theirs], **how), ours
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
