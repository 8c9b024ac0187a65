"""apt on the host for the root's suites, with directories of its own: the host's are untouched.

One update serves everything: what is chosen here, what mmdebstrap installs and what is
downloaded besides. Lists and packages stay in build/apt, which is all that --offline needs.
"""

import contextlib
import functools
import glob
import os
import re
import shutil
import subprocess
import time

from skualab.host import paths, say, secrets, settings
from skualab.host.lock import held
from skualab.host.say import LabError
from skualab.roots import mirror
from skualab.target.arch import ARCH
from skualab.target.distro import DISTRO

LISTS = os.path.join(paths.APT, 'lists')
ARCHIVES = os.path.join(paths.APT, 'archives')
SOURCES = os.path.join(paths.APT, 'sources.list')
LOGINS = os.path.join(paths.APT, 'auth.conf.d')      # of the mirror, and links to those of the host
UPDATED = os.path.join(paths.APT, 'updated')        # was touched when all lists had been fetched
DAY = 86400


def _options():
    empty = os.path.join(paths.APT, 'empty')
    values = {
        'Dir::State': paths.APT, 'Dir::State::Lists': LISTS, 'Dir::State::status': '/dev/null',
        'Dir::Cache': paths.APT, 'Dir::Cache::archives': ARCHIVES,
        'Dir::Cache::pkgcache': '', 'Dir::Cache::srcpkgcache': '',
        'Dir::Etc::SourceList': SOURCES, 'Dir::Etc::SourceParts': empty,
        'Dir::Etc::netrcparts': LOGINS,
        'Dir::Etc::Preferences': empty + '/none', 'Dir::Etc::PreferencesParts': empty,
        'APT::Architecture': ARCH.debian, 'APT::Architectures::': ARCH.debian,
        'APT::Sandbox::User': 'root' if os.geteuid() == 0 else '',
        'Debug::NoLocking': '1', 'Acquire::Retries': '3', 'Acquire::Languages': 'none',
    }
    return [word for key, value in values.items() for word in ('-o', '%s=%s' % (key, value))]


def run(tool, *words, **kwargs):
    """Run apt-get or apt-cache; its output goes to the log, or comes back where asked."""
    return subprocess.run([tool, *_options(), *words], check=True, **kwargs)


def _alone(function):
    """Two apt-gets in one directory take each other's files away: our lock is in place of apt's."""
    @functools.wraps(function)
    def locked(*args, **kwargs):
        with held(paths.APT + '.lock', 'uses %s' % paths.APT):
            return function(*args, **kwargs)
    return locked


class Arrival:
    """What has come since this was made, and how fast."""

    def __init__(self):
        self.start, self.before = time.monotonic(), self._bytes()

    @staticmethod
    def _bytes():
        total = 0
        for pattern in ('lists/partial', 'archives', 'archives/partial', 'sources'):
            for path in glob.glob(os.path.join(paths.APT, pattern, '*')):
                with contextlib.suppress(OSError):
                    total += os.stat(path).st_size
        return total

    def __call__(self):
        came = max(0, self._bytes() - self.before) / 1e6
        return '%.0f MB came, %.1f MB/s' % (came, came / max(time.monotonic() - self.start, 0.001))


def _write_logins():
    shutil.rmtree(LOGINS, ignore_errors=True)
    os.makedirs(LOGINS, 0o700)
    for path in glob.glob('/etc/apt/auth.conf.d/*.conf'):
        if os.access(path, os.R_OK):
            os.symlink(path, os.path.join(LOGINS, 'host-' + os.path.basename(path)))
    secrets.write(os.path.join(LOGINS, 'mirror.conf'), mirror.login())


@_alone
def update(log):
    """Fetch the lists, unless offline or they are of the same sources and of today."""
    for name in ('lists/partial', 'archives/partial', 'empty', 'auth.conf.d'):
        os.makedirs(os.path.join(paths.APT, name), exist_ok=True)
    if settings.offline:
        if not glob.glob(LISTS + '/*_Packages*'):
            raise LabError('no package list is here, and --offline forbids to download one: '
                           'run once without --offline, or run `lab cache import FILE`')
        return
    text = mirror.sources()
    _write_logins()
    if os.path.exists(SOURCES) and open(SOURCES).read() == text and os.path.exists(UPDATED) \
            and os.path.getmtime(SOURCES) <= os.path.getmtime(UPDATED) and time.time() - os.path.getmtime(UPDATED) < DAY:
        return
    # What a list that was not fetched leaves, or who is interrupted, is not fresh.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(UPDATED)
    with open(SOURCES, 'w') as file:
        file.write(text)
    run('apt-get', '-o', 'APT::Update::Error-Mode=any', 'update', stdout=log, stderr=log)
    with open(UPDATED, 'w'):
        pass


def names(pattern):
    """The names of packages that match, from the lists."""
    out = run('apt-cache', 'pkgnames', stdout=subprocess.PIPE, text=True).stdout.split()
    return [name for name in out if re.fullmatch(pattern, name)]


def version(package, kind='Packages', suite=None):
    """The newest version of a package, or of one's source (kind 'Sources'); from one suite if given."""
    text = run('apt-cache', 'madison', package, stdout=subprocess.PIPE, text=True).stdout
    for row in text.splitlines():
        _, number, where = [word.strip() for word in row.split('|')]
        if where.endswith(' ' + kind) and (suite is None or ' %s/' % suite in where):
            return number
    raise LabError('%s has no package %s; set SKUA_MIRROR to a mirror that has it' % (suite or 'the mirror', package))


def kernel(series):
    """The release (uname -r) of the newest packaged kernel of a series."""
    def number(release):
        return [int(word) for word in re.findall(r'\d+', release)]
    found = [name[len(DISTRO.image_package):] for name in names(DISTRO.image_package + DISTRO.image_release)]
    of_series = [release for release in found if re.match(re.escape(series) + r'[.+-]', release)]
    if not of_series:
        have = sorted({'.'.join(release.split('.')[:2]) for release in found}, key=number)
        raise LabError('the mirror has no kernel %s, but %s; set SKUA_MIRROR to a mirror that has it' % (series, ', '.join(have)))
    return max(of_series, key=number)


# What mmdebstrap installs besides, whatever it is asked for.
ALWAYS = '?narrow(?architecture(%s),?or(?essential,?priority(required)))' % ARCH.debian


@_alone
def fetch(packages, log):
    """Fetch what a root with these packages takes. Each stays here as it comes, so that after an end on the way
    the rest is fetched only. Nothing limits the time but apt's own patience with a mirror that is silent."""
    words = ['-q', '-y', '--no-install-recommends', '--download-only', 'install', *packages, 'apt', ALWAYS]
    done = subprocess.run(['apt-get', *_options(), '--print-uris', *words], stdout=subprocess.PIPE, stderr=log, text=True)
    sizes = [int(text.split()[2]) for text in done.stdout.splitlines() if text.startswith("'")]
    # Where it does not know how to install these, mmdebstrap will say it.
    if done.returncode or not sizes or settings.offline:
        return
    say.line('packages to download: %d, %.0f MB' % (len(sizes), sum(sizes) / 1e6))
    run('apt-get', *words, stdout=log, stderr=log)


@_alone
def copy(where):
    """Make a copy of the lists and of what was fetched. By hard links: a package that was fetched never changes."""
    subprocess.run(['cp', '-al', paths.APT, where], check=True)


@_alone
def prune(log):
    """Remove packages that the lists no longer have: newer ones took their place."""
    run('apt-get', 'autoclean', stdout=log, stderr=log)


@_alone
def download(packages, log):
    """Fetch packages (name or name=version) without installing; return their files."""
    files = []
    for package in packages:
        name = package.split('=')[0]
        number = version(name)
        file = '%s_%s_*.deb' % (name, number.replace(':', '%3a'))
        if not glob.glob(os.path.join(ARCHIVES, file)):
            if settings.offline:
                raise LabError('%s %s is not here, and --offline forbids to download it' % (name, number))
            run('apt-get', 'download', '%s=%s' % (name, number), cwd=ARCHIVES, stdout=log, stderr=log)
        files.append(glob.glob(os.path.join(ARCHIVES, file))[0])
    return files


def kernel_packages(release, log):
    """Fetch the packages of a kernel, by the lists; return their files."""
    found = names(DISTRO.kernel_packages + re.escape(release))
    if not found:
        raise LabError('the mirror no longer has the kernel %s, which the root was made for; remove the file %s, and the lab '
                       'makes a root with a newer kernel' % (release, os.path.join(paths.STAMPS, 'root')))
    return download(found, log)


def kept_kernel_packages(release):
    """The files of those that are here."""
    pattern = DISTRO.kernel_packages + re.escape(release) + r'_[^_]*_[^_]*\.deb'
    return [path for path in sorted(glob.glob(ARCHIVES + '/*.deb')) if re.fullmatch(pattern, os.path.basename(path))]


@_alone
def source(package, suite, log):
    """The original tarball of a source package, as a suite has it."""
    where = os.path.join(paths.APT, 'sources')
    os.makedirs(where, exist_ok=True)
    number = version(package, 'Sources', suite)
    upstream = number.split(':')[-1].rpartition('-')[0]
    pattern = os.path.join(where, '%s_%s.orig.tar.*' % (package, upstream))
    if not [name for name in glob.glob(pattern) if not name.endswith('.asc')]:
        if settings.offline:
            raise LabError('the source of %s %s is not here, and --offline forbids to download it' % (
                package, upstream))
        run('apt-get', 'source', '--download-only', '--tar-only', '%s=%s' % (package, number),
            cwd=where, stdout=log, stderr=log)
    tarball, = [name for name in glob.glob(pattern) if not name.endswith('.asc')]
    return tarball
