"""lab cache: what was fetched, as one file, for a machine that is bare or has no network.

It holds build/apt: package lists, packages and sources. With it, `--offline` builds all.
"""

import glob
import io
import os
import tarfile

from skualab.host import paths, say, secrets
from skualab.host.say import LabError
from skualab.roots import apt


def _failed(path, error):
    """That of a tar file tells of every compression that it is not, a line each."""
    return LabError('%s: %s' % (path, getattr(error, 'strerror', None) or str(error).splitlines()[0].rstrip(':')))


def export(path):
    if not os.path.isdir(paths.APT):
        raise LabError('there is no package to export yet; run `lab build` first')
    # Packages are compressed already.
    try:
        with tarfile.open(path, 'w') as file:
            file.add(paths.APT, 'apt', filter=_for_others)
            _add_sources(file)
    except OSError as error:
        raise _failed(path, error) from None
    say.line('%s: %.0f MB' % (path, os.path.getsize(path) / 1e6))
    return 0


def _for_others(member):
    """Passwords are not. apt names its lists without them."""
    return None if member.name in ('apt/sources.list', 'apt/auth.conf.d') else member


def _add_sources(file):
    """Of an earlier lab they may have a password."""
    if not os.path.exists(apt.SOURCES):
        return
    with open(apt.SOURCES) as sources:
        data = secrets.hide(sources.read(), '').encode()
    member = tarfile.TarInfo('apt/sources.list')
    member.size, member.mtime = len(data), os.path.getmtime(apt.SOURCES)
    file.addfile(member, io.BytesIO(data))


def restore(path):
    os.makedirs(paths.BUILD, exist_ok=True)
    try:
        with tarfile.open(path) as file:
            for member in file:
                inside = member.name == 'apt' or member.name.startswith('apt/')
                if not inside or '..' in member.name.split('/') or not (member.isfile() or member.isdir()):
                    raise LabError('%s is no file of `lab cache export`: it holds %s' % (path, member.name))
                file.extract(member, paths.BUILD)
    except (OSError, tarfile.TarError) as error:
        raise _failed(path, error) from None
    say.line('packages that can be used offline: %d' % len(glob.glob(paths.APT + '/archives/*.deb')))
    return 0
