"""Clusters, without guests: what describes them, and what is told of those that are not up."""

import errno
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from skualab.clusters import down, enter, login, plan, state, up
from skualab.host.say import LabError
from testing import lab

TWO_HOSTS = '''
memory = "768M"
keys = "keys"
[hosts.east]
links = ["udp:10.0.0.1:4789:10.0.0.2:4789"]
[hosts.west]
links = ["udp:10.0.0.2:4789:10.0.0.1:4789"]
[guests.node1]
host = "east"
cpus = 1
[guests.node2]
host = "west"
memory = "1G"
nics = [{}, {link = "wire:store", ipv4 = "10.1.0.2/16", ipv6 = "fd00::2/48", max_pages = 1000}]
'''


class Plans(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.path = os.path.join(place.name, 'Two hosts.toml')

    def plan(self, text, host=None):
        with open(self.path, 'w') as file:
            file.write(text)
        return plan.make(plan.read(self.path), self.path, host, memory=None, cpus=2)

    def refused(self, text, part, host=None):
        with self.assertRaisesRegex(LabError, part):
            self.plan(text, host)

    def test_guests_that_are_alike(self):
        planned = plan.make(plan.alike(3), '--guests', memory='1G', cpus=2)
        self.assertEqual([(one.name, one.memory, one.cpus) for one in planned.guests],
                         [('node%d' % number, '1G', 2) for number in (1, 2, 3)])
        self.assertEqual([nic.line() for nic in planned.nics()], [
            '02:00:00:00:00:0%d skua0 skua_0 left 192.0.2.%d/24 2001:db8::%d/64' % (n, n, n) for n in (1, 2, 3)])
        self.assertEqual({nic.options['link'] for nic in planned.nics()}, {'wire:0'})

    def test_a_host_has_its_guests_and_knows_all(self):
        east, west = self.plan(TWO_HOSTS, 'east'), self.plan(TWO_HOSTS, 'west')
        self.assertEqual([(one.name, one.memory, one.cpus) for one in east.guests], [('node1', '768M', 1)])
        self.assertEqual([(one.name, one.memory, one.cpus) for one in west.guests], [('node2', '1G', 2)])
        self.assertEqual(east.hosts, west.hosts)
        self.assertEqual(east.hosts, [('192.0.2.1', 'node1'), ('192.0.2.2', 'node2'), ('10.1.0.2', 'node2-skua1')])
        self.assertEqual(east.keys, os.path.join(os.path.dirname(self.path), 'keys'))
        first, second = west.nics()
        self.assertEqual((first.options['link'], first.mac), ('udp:10.0.0.2:4789:10.0.0.1:4789', '02:00:00:00:00:02'))
        self.assertEqual(second.line(), '02:00:00:00:01:02 skua1 skua_1 right 10.1.0.2/16 fd00::2/48')
        self.assertEqual(second.options, {'name': 'node2-skua1', 'mac': '02:00:00:00:01:02', 'link': 'wire:store',
                                          'max_pages': '1000'})

    def test_what_a_file_may_not_say(self):
        guest = '[guests.a]\n'
        for text, part in (
                ('guests = ', 'hosts.toml: Invalid value'),
                ('', '1 to 250 guests'),
                (guest + 'cores = 2', "guest a: there is no key 'cores'; the keys are host, memory, cpus, nics"),
                ('[guest.a]', "there is no key 'guest'"),
                (guest + 'cpus = "2"', 'cpus must be a number'),
                (guest + 'cpus = true', 'cpus must be a number'),
                (guest + 'cpus = 0', 'cpus must be above 0'),
                ('guests = 3', 'guests must be a table'),
                ('[guests]\na = 3', 'guest a must be a table'),
                ('[guests.A]', 'guest A: the name must be'),
                (guest + 'nics = []', 'nics must have a table'),
                (guest + 'nics = [3]', 'NIC 0 must be a table'),
                (guest + 'nics = [{}, {socket = "/x"}]', "NIC 1: the lab chooses 'socket' itself"),
                (guest + 'nics = [{link = "wire:a,b"}]', 'link must be a string without commas'),
                (guest + 'nics = [{ipv4 = "10.0.0.1"}]', 'ipv4 must be an address and .* "10.0.0.1/24"'),
                (guest + 'nics = [{ipv6 = "10.0.0.1/8"}]', 'ipv6 must be an address and .* "fd00::1/64"'),
                (guest + 'nics = [{ipv4 = 3}]', 'ipv4 must be an address'),
                (guest + 'nics = [{}, {}, {}, {}]', 'NIC 3 needs ipv4'),
                (guest + '[guests.b]\nnics = [{ipv4 = "192.0.2.1/24"}]', 'NICs a and b have the same ipv4, 192.0.2.1'),
                (guest + '[guests.b]\nnics = [{mac = "02:00:00:00:00:01"}]', 'the same mac')):
            self.refused(text, part)

    def test_hosts(self):
        self.refused(TWO_HOSTS, '--host must be one of east, west')
        self.refused(TWO_HOSTS, '--host must be one of east, west', 'north')
        self.refused('[guests.a]', 'has no .hosts.; leave out --host', 'east')
        self.refused('[hosts.east]\nlinks = [3]\n[guests.a]', 'host east: links must be strings')
        self.refused('[hosts.east]\n[guests.a]', 'guest a needs host = "NAME", one of east', 'east')
        self.refused('[hosts.east]\n[guests.a]\nhost = "west"', "there is no host 'west'", 'east')
        self.refused(TWO_HOSTS.replace('"west"', '"east"'), 'no guest is on host west', 'west')

    def test_an_old_python(self):
        with mock.patch.dict(sys.modules, {'tomllib': None}):
            self.refused('', 'needs Python 3.11 or later')

    def test_no_file(self):
        with self.assertRaisesRegex(LabError, 'nonexistent: No such file'):
            plan.read('/nonexistent')

    def test_the_name_of_a_cluster(self):
        self.assertEqual([plan.name(path) for path in (None, self.path, '/a/x.y.toml')], ['cluster', 'two-hosts', 'x-y'])


class States(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        patch = mock.patch.object(state, 'WHERE', place.name)
        patch.start()
        self.addCleanup(patch.stop)

    def cluster(self, name, held=True, **known):
        """One that is up, or whose process was killed."""
        cluster = state.Cluster(name)
        descriptor = cluster.hold()
        cluster.clear()
        cluster.write({'up': True, 'since': 0, 'fault': None, 'place': '/nonexistent', 'env': [], 'share': None,
                       'nodes': {'node1': {'ended': None, 'fault': None, **known}}})
        if held:
            self.addCleanup(os.close, descriptor)
        else:
            os.close(descriptor)
        return cluster

    def refused(self, function, *words, part, status=125):
        with self.assertRaisesRegex(LabError, part) as caught:
            function(*words)
        self.assertEqual(caught.exception.status, status)

    def test_none_is_up(self):
        self.refused(down.down, None, part='no cluster is up; lab up boots one')
        self.refused(enter.execute, None, 'node1', ['true'], part='no cluster is up; lab up boots one')
        self.refused(down.down, 'x', part="no cluster 'x' is up")

    def test_the_only_one_is_meant(self):
        self.cluster('b', held=False)
        self.assertEqual(state.choose().name, 'b')
        self.cluster('a')
        self.assertEqual((state.choose().name, state.choose('b').name), ('a', 'b'))
        self.refused(state.choose, 'c', part="no cluster 'c' is up; up: a")
        self.cluster('c')
        self.refused(state.choose, part='several clusters are there: a, c; choose one')

    def test_a_second_up(self):
        self.cluster('a')
        planned = plan.make(plan.alike(1), '', memory='64M', cpus=1)
        self.refused(up.up, 'a', planned, None, 1, part="the cluster 'a' is up since .*, with node1; lab down a ends it")

    def test_one_that_starts_can_be_ended(self):
        """While all is built, too: lab down ends the process that is named, whoever had that id before."""
        cluster = state.Cluster('a')
        os.close(cluster.hold())
        with open(cluster.lock, 'w') as file:
            file.write('1\n')
        planned = plan.make(plan.alike(1), '', memory='64M', cpus=1)
        pids = []
        with mock.patch.object(up.scene, 'build', side_effect=lambda *_: pids.append(cluster.pid())), \
                mock.patch.object(up, '_start', side_effect=LabError('x')):
            self.refused(up.up, 'a', planned, mock.Mock(), 1, part='^x$')
        self.assertEqual(pids, [os.getpid()])

    def test_a_bad_name(self):
        self.refused(state.Cluster, '../x', part="the name of a cluster '../x' must be")

    def test_no_such_guest(self):
        self.cluster('a')
        self.refused(enter.execute, None, 'node2', ['true'], part="has no guest 'node2'; its guests are node1")

    def test_a_guest_that_has_ended(self):
        self.cluster('a', ended='QEMU ended with status 1')
        self.refused(enter.execute, 'a', 'node1', ['true'], part='node1 has ended: QEMU ended with status 1')
        self.cluster('b', ended='x', fault='panic')
        self.refused(enter.execute, 'b', 'node1', ['true'], part='node1 has ended', status=126)

    def test_one_that_was_killed(self):
        cluster = self.cluster('a', held=False)
        self.refused(enter.execute, None, 'node1', ['true'], part="the cluster 'a' has ended: .*lab down a removes")
        self.assertEqual(down.down(None), 0)
        self.assertTrue(os.path.exists(cluster.result))
        self.refused(down.down, None, part='no cluster is up')

    def test_the_status_of_down_tells_of_faults(self):
        for known, status in (({'ended': 'x'}, 125), ({'fault': 'WARNING'}, 126), ({}, 0)):
            self.cluster('a', held=False, **known)
            self.assertEqual(down.down('a'), status)

    def test_names_are_completed(self):
        self.cluster('a')
        self.cluster('b')
        self.refused(down.down, '?', part='; up: a, b$')
        self.refused(enter.execute, 'a', '?', [], part='; its guests are node1$')


class Terminals(unittest.TestCase):
    def terminal(self, stdin=True, stdout=True, **foreground):
        """What a command gets: whether a terminal in the guest, and which standard input ssh has. foreground: what
        asking for the terminal's process group does."""
        known = {'up': True, 'fault': None, 'place': '/x', 'env': [], 'share': None,
                 'nodes': {'node1': {'ended': None, 'fault': None}}}
        process = mock.Mock(**{'wait.return_value': 0})
        with mock.patch.multiple(enter.sys, stdin=mock.Mock(), stdout=mock.Mock()), \
                mock.patch.object(enter.os, 'tcgetpgrp', **foreground), \
                mock.patch.object(enter.state, 'choose'), mock.patch.object(enter, '_known', return_value=known), \
                mock.patch.object(login, 'termios'), \
                mock.patch.object(login, 'popen') as popen:
            enter.sys.stdin.isatty.return_value, enter.sys.stdout.isatty.return_value = stdin, stdout
            popen.return_value = process, os.open(os.devnull, os.O_RDONLY)
            self.assertEqual(enter.execute('a', 'node1', ['true']), 0)
        return '-tt' in popen.call_args[0][0], popen.call_args[1].get('stdin')

    def test_a_job_in_the_foreground_has_one(self):
        self.assertEqual(self.terminal(return_value=os.getpgrp()), (True, None))
        self.assertEqual(self.terminal(return_value=os.getpgrp(), stdout=False), (False, None))

    def test_a_job_in_the_background_does_not_read_from_it(self):
        """It would be stopped (SIGTTIN) when somebody types."""
        for stdout in (True, False):
            self.assertEqual(self.terminal(return_value=os.getpgrp() + 1, stdout=stdout), (False, subprocess.DEVNULL))
        self.assertEqual(self.terminal(return_value=os.getpgrp() + 1, stdin=False), (False, None))

    def test_a_terminal_that_controls_nothing_has_no_jobs(self):
        """So it is after setsid, and with su -c."""
        self.assertEqual(self.terminal(side_effect=OSError(errno.ENOTTY, 'x')), (True, None))


class Words(unittest.TestCase):
    """A bad command line is told before anything is built."""

    def test_bad_command_lines(self):
        for words, part in (
                (('up', 'FILE', '--guests', '2'), 'leave out --guests'), (('up', '--host', 'x'), '--host needs a FILE'),
                (('up', '--', 'true'), 'takes no command'), (('up', '/nonexistent'), 'No such file'),
                (('up', '--guests', '251'), '1 to 250 guests'), (('exec', ), 'needs a COMMAND'),
                (('exec', '--name', 'x', '--', 'true'), 'need a NODE'),
                (('exec', '--timeout', '9', '--', 'true'), 'need a NODE')):
            status, lines = lab(*words)
            self.assertEqual((status, len(lines)), (125, 1), words)
            self.assertIn(part, lines[0])
