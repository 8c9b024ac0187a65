"""Whatever went wrong, in one line that says what to do, and the lab's exit status. Nobody who uses the lab
gets to see a traceback: that of a fault of the lab's own is left in a file."""

import errno
import os
import re
import subprocess
import traceback

from skualab.host import paths
from skualab.host.say import LabError
from skualab.host.secrets import hide

FULL = (errno.ENOSPC, errno.EDQUOT)
ALMOST_NOTHING = 16 << 20       # bytes that are free on a disk that is as good as full


def full():
    """That the disk is full, and what to do; or None."""
    there = paths.BUILD if os.path.exists(paths.BUILD) else paths.REPO
    disk = os.statvfs(there)
    if disk.f_bavail * disk.f_frsize > ALMOST_NOTHING:
        return None
    return 'the disk of %s is full; make room there, or set SKUA_BUILD=DIR to build elsewhere' % there


UNREACHABLE = re.compile(r'^(?:E|Err|W):.*(?:Could not (?:resolve|connect)|Temporary failure resolving|Connection (?:failed|'
                         r'timed out|refused)|Network is unreachable|Failed to fetch|Unable to connect).*', re.M)


def cause(log):
    """Why a step failed, where its log or the machine shows what the person can do; or None."""
    if full():
        return full()
    with open(log, errors='replace') as file:
        text = file.read()
    if 'No space left on device' in text:
        return 'a disk is full (%s); make room, or set SKUA_BUILD=DIR to build elsewhere' % log
    found = UNREACHABLE.findall(text)
    if found:
        return ('the mirror cannot be reached (%s); try again later, or set SKUA_MIRROR=ADDRESS to another; '
                'the lab keeps what it has downloaded' % hide(found[-1].strip()))
    return None


def unknown(log, status):
    """A failure whose cause is not known: the compiler's first error, else the log's last line, and where to look."""
    with open(log, errors='replace') as file:
        lines = [text.strip() for text in file if text.strip()]
    errors = [text for text in lines if re.search(r':\d+: (?:fatal )?error: ', text)]
    return '%s (status %d); its log is %s; correct the sources if you changed them, else run `lab doctor`' % (
        (errors[:1] or lines[-1:] or ['nothing was said'])[0], status, log)


def _not_permitted(error):
    """What cannot be written is nearly always a build directory that another user made."""
    there = paths.BUILD if os.path.exists(paths.BUILD) else paths.REPO
    owner = os.stat(there).st_uid
    told = '%s: %s' % (error.filename, error.strerror)
    if owner != os.geteuid():
        told += '; %s belongs to uid %d, so set SKUA_BUILD=DIR to build elsewhere' % (there, owner)
    return told


def _of_the_lab(error):
    path = os.path.join(paths.LOGS, 'traceback')
    try:
        os.makedirs(paths.LOGS, exist_ok=True)
        with open(path, 'w') as file:
            traceback.print_exception(type(error), error, error.__traceback__, file=file)
    except OSError:
        path = 'no traceback could be written'
    return 'this is a fault of the lab; please report it: %s: %s (%s)' % (
        type(error).__name__, ' '.join(str(error).split()), path)


def _text(error):
    if isinstance(error, LabError):
        return str(error)
    if isinstance(error, OSError):
        if error.errno in FULL:
            return full() or '%s: %s; make room there' % (error.filename or 'a disk', error.strerror)
        if isinstance(error, BrokenPipeError):
            return 'the program that read the output of the lab has ended'
        if isinstance(error, PermissionError):
            return _not_permitted(error)
        if isinstance(error, FileNotFoundError) and error.filename and '/' not in str(error.filename):
            return 'this host has no %s; run `lab doctor`, which names the package' % error.filename
        if error.filename:
            return '%s: %s' % (error.filename, error.strerror)
    if isinstance(error, (subprocess.CalledProcessError, subprocess.TimeoutExpired)):
        words = error.cmd if isinstance(error.cmd, str) else os.path.basename(error.cmd[0])
        how = 'status %d' % error.returncode if isinstance(error, subprocess.CalledProcessError) \
            else 'no end within %d s' % error.timeout
        return full() or '%s failed (%s); run `lab doctor` to see whether this machine lacks something' % (words, how)
    return _of_the_lab(error)


def told(error):
    """(exit status, line)"""
    return getattr(error, 'status', 125), hide(_text(error))
