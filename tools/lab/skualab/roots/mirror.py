"""Which mirror: SKUA_MIRROR, else the first one in the host's own apt configuration.

Both forms of sources are understood: one line a source, and deb822. No mirror is named in
this repository. Suites are chosen by role.
"""

import glob
import os
import re

from skualab.host import secrets
from skualab.host.say import LabError
from skualab.host.secrets import hide
from skualab.target.distro import DISTRO


def _one_line(path):
    for text in open(path, errors='replace'):
        match = re.match(r'\s*deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+(.+)', text)
        if match:
            yield match.group(1), match.group(2)


def _deb822(path):
    for stanza in re.split(r'\n\s*\n', open(path, errors='replace').read()):
        fields, last = {}, None
        for text in stanza.splitlines():
            if text.startswith('#'):
                continue
            if text[:1].isspace() and last:
                fields[last] += ' ' + text.strip()
            elif ':' in text:
                last, value = text.split(':', 1)
                last = last.strip().lower()
                fields[last] = value.strip()
        if fields.get('enabled', 'yes').lower() == 'no' or 'deb' not in fields.get('types', '').split():
            continue
        for uri in fields.get('uris', '').split():
            for suite in fields.get('suites', '').split():
                yield uri, suite


def _host():
    """(URI, suite) of each source that the host's apt uses."""
    directory = '/etc/apt'
    for path in [directory + '/sources.list'] + sorted(glob.glob(directory + '/sources.list.d/*')):
        if os.path.isfile(path):
            if path.endswith('.sources'):
                yield from _deb822(path)
            elif path.endswith('.list'):
                yield from _one_line(path)


def uri():
    """The mirror. It must serve Debian's main archive; it may be a host's only source."""
    named = os.environ.get('SKUA_MIRROR')
    if named:
        return named.rstrip('/')
    for where, suite in _host():
        # Debian's archive and no other: its path ends in /debian, whatever the host serves.
        if re.search(r'/debian/?$', where) and '/' not in suite.strip('/'):
            return where.rstrip('/')
    raise LabError("this host's apt sources name no Debian mirror; "
                   'set SKUA_MIRROR to the address of one that has ' + DISTRO.backports)


def keyring():
    if os.path.exists(DISTRO.keyring):
        return DISTRO.keyring
    raise LabError('%s is missing; install the package %s' % (DISTRO.keyring, DISTRO.keyring_package))


def sources():
    """The lines of sources.list, for us and for the root, which everybody may read."""
    where, key = hide(uri(), ''), keyring()
    lines = [(kind, suite) for suite in (DISTRO.stable, DISTRO.updates, DISTRO.backports) for kind in ('deb', 'deb-src')]
    return ''.join('%s [signed-by=%s] %s %s %s\n' % (kind, key, where, suite, DISTRO.components)
                   for kind, suite in [*lines, ('deb-src', DISTRO.testing)])


def login():
    """The line of auth.conf for the mirror, if its address has a password."""
    try:
        return secrets.login(uri())
    except ValueError as error:
        raise LabError("the address of the mirror has %s, which apt's auth.conf cannot hold; use another account" % error) from None
