"""What a cluster consists of: guests with their NICs, by a file or by their number.

The file is TOML. One file describes a cluster of several hosts: each host boots the guests that name it, and all guests
know the names and addresses of all.
"""

import ipaddress
import os
import re

from skualab.clusters.state import DEFAULT, NAME
from skualab.host.say import LabError
from skualab.machines.nics import Nic

NETWORKS = '192.0.2', '198.51.100', '203.0.113'     # of the first NIC of every guest, the second, the third
MOST = 250                                          # guests: each has an address in these
TOP = {'memory': str, 'cpus': int, 'keys': str, 'hosts': dict, 'guests': dict}
HOST = {'links': list}
GUEST = {'host': str, 'memory': str, 'cpus': int, 'nics': list}
LABS = 'name', 'socket'                             # options of skuad that the lab chooses
ADDRESSES = {'ipv4': (ipaddress.IPv4Interface, '10.0.0.1/24'), 'ipv6': (ipaddress.IPv6Interface, 'fd00::1/64')}
TOLD = {str: 'a string', int: 'a number', list: 'an array', dict: 'a table'}


class Guest:
    def __init__(self, name, memory, cpus, nics):
        self.name, self.memory, self.cpus, self.nics = name, memory, cpus, nics


class Plan:
    """guests: those of this host. hosts: (address, name) of every NIC of the cluster."""

    def __init__(self, guests, hosts, keys=None):
        self.guests, self.hosts, self.keys = guests, hosts, keys

    def nics(self):
        return [nic for guest in self.guests for nic in guest.nics]


def read(path):
    """The description in a file."""
    try:
        import tomllib
    except ImportError:
        raise LabError('to read %s the lab needs Python 3.11 or later, as in Debian 12 and Ubuntu 24.04; without a file, '
                       'lab up --guests N works here' % path) from None
    try:
        with open(path, 'rb') as file:
            return tomllib.load(file)
    except OSError as error:
        raise LabError('%s: %s' % (path, error.strerror)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError('%s: %s' % (path, error)) from None


def name(path):
    """Of a cluster that has no other: its file's, as far as a name may have its characters."""
    if not path:
        return DEFAULT
    return re.sub('[^a-z0-9]+', '-', os.path.splitext(os.path.basename(path))[0].lower()).strip('-')


def alike(count):
    """The description of guests that are all alike."""
    return {'guests': {'node%d' % number: {} for number in range(1, count + 1)}}


def _typed(table, kinds, where):
    """The values of a table; LabError names what does not belong there."""
    if not isinstance(table, dict):
        raise LabError('%s must be a table' % where)
    for key, value in table.items():
        if key not in kinds:
            raise LabError("%s: there is no key '%s'; the keys are %s" % (where, key, ', '.join(kinds)))
        if type(value) is not kinds[key]:
            raise LabError('%s: %s must be %s' % (where, key, TOLD[kinds[key]]))
        if kinds[key] is int and value < 1:
            raise LabError('%s: %s must be above 0' % (where, key))
    return table


def _address(text, key, where):
    kind, example = ADDRESSES[key]
    try:
        if '/' not in text:
            raise ValueError
        address = kind(text)
        return str(address.ip), address.network.prefixlen
    except (TypeError, ValueError):
        raise LabError('%s: %s must be an address and the length of its network, for instance "%s"' % (
            where, key, example)) from None


def _options(given, where):
    """The options of skuad in a NIC's table, as strings."""
    for key, value in given.items():
        if key in LABS:
            raise LabError("%s: the lab chooses '%s' itself; leave it out" % (where, key))
        if type(value) not in (str, int) or ',' in str(value):
            raise LabError('%s: %s must be a string without commas, or a number' % (where, key))
    return {key: str(value) for key, value in given.items()}


def _nic(guest, name, index, given, links, where):
    """NIC number `index` of guest number `guest`."""
    if not isinstance(given, dict):
        raise LabError('%s must be a table' % where)
    given = dict(given)
    addresses = {key: _address(given.pop(key), key, where) for key in ADDRESSES if key in given}
    if 'ipv4' not in addresses and index >= len(NETWORKS):
        raise LabError('%s needs ipv4 = "ADDRESS/LENGTH": only the first %d NICs of a guest have addresses of their own' % (
            where, len(NETWORKS)))
    options = {'mac': '02:00:00:00:%02x:%02x' % (index, guest),
               'link': links[index] if index < len(links) else 'wire:%d' % index, **_options(given, where)}
    nic = Nic(index, ','.join('%s=%s' % item for item in options.items()),
              '%s-skua%d' % (name, index) if index else name)
    nic.ipv4, nic.ipv4_length = addresses.get('ipv4') or ('%s.%d' % (NETWORKS[index], guest), 24)
    nic.ipv6, nic.ipv6_length = addresses.get('ipv6') or (
        '2001:db8:0:%x::%x' % (index, guest) if index else '2001:db8::%x' % guest, 64)
    return nic


def _once(nics, where):
    """No two NICs share an address."""
    for kind in 'mac', 'ipv4', 'ipv6':
        seen = {}
        for nic in nics:
            other = seen.setdefault(getattr(nic, kind), nic)
            if other is not nic:
                raise LabError('%s: the NICs %s and %s have the same %s, %s' % (
                    where, other.name, nic.name, kind, getattr(nic, kind)))


def _guest(number, name, given, top, links, where):
    if not re.fullmatch(NAME, name):
        raise LabError('%s: the name must be a letter, and up to 30 letters, digits and - (a-z0-9-)' % where)
    nics = [_nic(number, name, index, nic, links, '%s: NIC %d' % (where, index))
            for index, nic in enumerate(given.get('nics', [{}]))]
    if not nics:
        raise LabError('%s: nics must have a table for each NIC, for instance [{}]' % where)
    return Guest(name, given.get('memory', top.get('memory')), given.get('cpus', top['cpus']), nics)


def _here(hosts, guests, host, where):
    """The names of the guests of this host."""
    for name, guest in guests.items():
        if hosts and 'host' not in guest:
            raise LabError('%s: guest %s needs host = "NAME", one of %s' % (where, name, ', '.join(hosts)))
        if guest.get('host') not in (None, *hosts):
            raise LabError("%s: guest %s: there is no host '%s' under [hosts]" % (where, name, guest['host']))
    if hosts and host not in hosts:
        raise LabError('%s: --host must be one of %s' % (where, ', '.join(hosts)))
    if host and not hosts:
        raise LabError('%s has no [hosts]; leave out --host' % where)
    here = [name for name, guest in guests.items() if guest.get('host') == host]
    if not here:
        raise LabError('%s: no guest is on host %s' % (where, host))
    return here


def make(description, where, host=None, **defaults):
    """A plan by a description, whose errors begin with `where`. defaults: memory and cpus, where it has none."""
    top = {**defaults, **_typed(description, TOP, where)}
    hosts = {name: _typed(table, HOST, '%s: host %s' % (where, name)) for name, table in top.get('hosts', {}).items()}
    for name, table in hosts.items():
        if not all(isinstance(link, str) and ',' not in link for link in table.get('links', [])):
            raise LabError('%s: host %s: links must be strings without commas' % (where, name))
    guests = {name: _typed(table, GUEST, '%s: guest %s' % (where, name)) for name, table in top.get('guests', {}).items()}
    if not 0 < len(guests) <= MOST:
        raise LabError('%s: there must be 1 to %d guests, each with a table [guests.NAME]' % (where, MOST))
    here = _here(hosts, guests, host, where)
    planned = {name: _guest(number, name, guest, top, hosts[guest['host']].get('links', []) if hosts else [],
                            '%s: guest %s' % (where, name)) for number, (name, guest) in enumerate(guests.items(), 1)}
    nics = [nic for guest in planned.values() for nic in guest.nics]
    _once(nics, where)
    keys = os.path.join(os.path.dirname(os.path.abspath(where)), top['keys']) if 'keys' in top else None
    return Plan([planned[name] for name in here], [(nic.ipv4, nic.name) for nic in nics], keys)
