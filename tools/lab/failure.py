"""Whatever went wrong, in one line that says what to do, and the lab's exit status. Nobody who uses the lab
gets to see a traceback: that of a fault of the lab's own is left in a file."""

import os
import subprocess
import traceback

import host
import mirror
import paths
from say import LabError


def _not_permitted(error):
    """What cannot be written is nearly always a build directory that another user made."""
    there = paths.BUILD if os.path.exists(paths.BUILD) else paths.REPO
    owner = os.stat(there).st_uid
    told = '%s: %s' % (error.filename, error.strerror)
    if owner != os.geteuid():
        told += '; %s belongs to uid %d: SKUA_BUILD=DIR builds elsewhere' % (there, owner)
    return told


def _of_the_lab(error):
    path = os.path.join(paths.LOGS, 'traceback')
    try:
        os.makedirs(paths.LOGS, exist_ok=True)
        with open(path, 'w') as file:
            traceback.print_exception(type(error), error, error.__traceback__, file=file)
    except OSError:
        path = 'no traceback could be written'
    return 'a fault of the lab itself, please report it: %s: %s (%s)' % (
        type(error).__name__, ' '.join(str(error).split()), path)


def _text(error):
    if isinstance(error, LabError):
        return str(error)
    if isinstance(error, OSError):
        if error.errno in host.FULL:
            return host.full() or '%s: %s: make room there' % (error.filename or 'a disk', error.strerror)
        if isinstance(error, BrokenPipeError):
            return 'nobody reads what the lab prints any more'
        if isinstance(error, PermissionError):
            return _not_permitted(error)
        if isinstance(error, FileNotFoundError) and error.filename and '/' not in str(error.filename):
            return 'this host has no %s: `lab doctor` says which package brings it' % error.filename
        if error.filename:
            return '%s: %s' % (error.filename, error.strerror)
    if isinstance(error, (subprocess.CalledProcessError, subprocess.TimeoutExpired)):
        words = error.cmd if isinstance(error.cmd, str) else os.path.basename(error.cmd[0])
        how = 'status %d' % error.returncode if isinstance(error, subprocess.CalledProcessError) \
            else 'no end within %d s' % error.timeout
        return host.full() or '%s failed (%s): `lab doctor` says whether this machine lacks something' % (words, how)
    return _of_the_lab(error)


def told(error):
    """(exit status, line)"""
    return getattr(error, 'status', 125), mirror.hide(_text(error))
