"""The command line and its completion."""

import os
import subprocess
import unittest

from skualab.checks.table import CHECKS
from skualab.command import parser
from skualab.target.distro import DISTRO
from testing import lab, LAB


class Options(unittest.TestCase):
    """A bad option is the lab's failure, 125, named in one line."""

    def refused(self, words, part):
        status, lines = lab(*words)
        self.assertEqual(status, 125, lines)
        self.assertIn(part, lines[-1])

    def test_unknown_option(self):
        self.refused(['run', '--nonsense', '--', 'true'], '--nonsense')

    def test_no_command(self):
        self.refused(['run'], 'needs a COMMAND')

    def test_unknown_verb(self):
        self.refused(['walk'], 'walk')

    def test_timeout_of_zero(self):
        self.refused(['run', '--timeout', '0', '--', 'true'], 'must be above 0')

    def test_env_without_value(self):
        self.refused(['run', '--env', 'NAME', '--', 'true'], 'must be NAME=VALUE')

    def test_share_that_is_not_there(self):
        self.refused(['run', '--share', '/nonexistent', '--', 'true'], 'no directory /nonexistent')

    def test_deb_that_is_not_there(self):
        self.refused(['run', '--deb', '/nonexistent.deb', '--', 'true'], 'no file /nonexistent.deb')

    def test_artifacts_where_a_file_is(self):
        self.refused(['run', '--artifacts', '/dev/null', '--', 'true'], '/dev/null: File exists')

    def test_unknown_stage(self):
        self.refused(['check', 'nothing'], 'no stage nothing')

    def test_command_where_none_belongs(self):
        self.refused(['doctor', '--', 'true'], 'takes no command')

    def test_each_of_several_guests_has_a_command(self):
        both = ['--left', 'true', '--right', 'true']
        for words in (['--guests', '2', '--left', 'true'], ['--guests', '2', '--', 'true'],
                      ['--left', 'true', '--', 'true'], ['--guests', '3', '--', 'true'],
                      ['--guests', '2', *both, '--netns', 'none'], ['--guests', '3', *both],
                      ['--guests', '2', *both, '--all', 'true'], ['--guests', '2', *both, '--guest', 'left=true'],
                      ['--guests', '3', '--guest', 'node1=true'], ['--guests', '3', '--guest', 'node4=x', '--all', 'x'],
                      ['--guests', '2', '--guest', 'node1=x', '--guest', 'node1=y', '--all', 'x'],
                      ['--guests', '2', '--guest', 'node1', '--all', 'x'], ['--all', 'true', '--', 'true'],
                      ['--guests', '3', '--all', 'true', '--', 'true'], ['--guests', '0', '--all', 'true'],
                      ['--guests', '251', '--all', 'true'], ['--guests', '3', '--all', 'x', '--device', 'mac=1']):
            status, said = lab('run', *words)
            self.assertEqual((status, len(said)), (125, 1), words)

    def test_the_commands_of_several_guests(self):
        args = parser.parse(['run', '--guests', '3', '--guest', 'node2=a=b', '--all', 'c'])
        self.assertEqual((args.commands, args.server), ({'node1': 'c', 'node2': 'a=b', 'node3': 'c'}, 'node1'))
        args = parser.parse(['run', '--guests', '2', '--left', 'a', '--right', 'b'])
        self.assertEqual((args.commands, args.server), ({'left': 'a', 'right': 'b'}, 'right'))


    def test_options_of_skuactl(self):
        for words, wanted in ((['devices'], ['devices']), (['capture', 'skua0', '-w', 'x'], ['capture', 'skua0', '-w', 'x']),
                              (['--', '-j', 'qps'], ['-j', 'qps'])):
            args = parser.parse(['skuactl', '--socket', '/s', *words])
            self.assertEqual((args.socket, args.command), ('/s', wanted))
        self.refused(['skuactl', '--socket', '/s'], 'needs a COMMAND')


class Completion(unittest.TestCase):
    def offered(self, *words):
        done = subprocess.run(
            ['bash', '-c', '. "$0/completion.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
             '_lab "$1" "${*: -1}" "${*: -2:1}"; printf "%s\\n" "${COMPREPLY[@]}"',
             LAB, os.path.join(LAB, 'lab'), *words], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, '')
        return set(done.stdout.split())

    def test_verbs(self):
        self.assertEqual(self.offered('sh'), {'shell'})
        self.assertLessEqual({'run', 'check', 'doctor', 'cache', 'exec', 'up', 'down'}, self.offered(''))

    def test_options_of_a_verb(self):
        self.assertEqual(self.offered('check', '--f'), {'--full'})
        self.assertLessEqual({'--guests', '--left', '--kernel', '--timeout'}, self.offered('run', '-'))

    def test_values_of_an_option(self):
        self.assertEqual(self.offered('demo', '--kernel', ''), set(DISTRO.series))

    def test_stages(self):
        self.assertEqual(self.offered('check', 'recovery-'), {one.name for one in CHECKS
                                                              if one.name.startswith('recovery-')})

    def test_not_of_the_command_in_a_guest(self):
        self.assertEqual(self.offered('run', '--', '-'), set())
