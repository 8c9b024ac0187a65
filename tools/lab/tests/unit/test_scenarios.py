"""The guide's table of scenarios says what the scripts have."""

import os
import re
import unittest

from skualab.host import paths
from testing import script

ROW = re.compile(r'^   \* - .*?(?=^   \* - |^\S)', re.M | re.S)


def rows():
    """{command: (kernels, faults)} of the table."""
    with open(paths.repo('Documentation/user/consumers.rst')) as file:
        text = file.read().split('All scenarios\n')[1].split('\nNetwork users of the kernel\n')[0]
    found = {}
    for row in ROW.findall(text + '\nend'):
        _, kernels, faults, command = (' '.join(cell.split()).replace('``', '') for cell in row.split('\n     - '))
        found[command] = kernels.split(', '), faults.split(', ')
    return found


class Scenarios(unittest.TestCase):
    def test_storage(self):
        words = {'link down, up': 'link', '1% lost': 'loss', 'server dies': 'death'}
        told = {command.split()[1]: faults for command, (_, faults) in rows().items() if command.startswith('test-storage')}
        for one in script('tests/test-storage').SCENARIOS:
            faults = [words.get(name, name).replace(' reset', '').replace(', no I/O', ' without I/O')
                      for name, _ in one.faults]
            self.assertEqual(told.pop(one.name, None), faults, one.name)
        self.assertEqual(told, {})

    def test_ulp(self):
        told = {command.split()[1]: kernels for command, (kernels, _) in rows().items() if command.startswith('test-ulp')}
        have = script('tests/test-ulp').SCENARIOS
        for name, kernels in told.items():
            self.assertEqual(kernels, [kernel for kernel, names in have.items() if name in names], name)
        self.assertEqual(set(told), {name for names in have.values() for name in names})

    def test_user_space(self):
        for command in rows():
            if command.startswith('test-middleware'):
                self.assertTrue(os.path.exists(paths.repo('selftests/ulp/%s.sh' % command.split()[-1])), command)


if __name__ == '__main__':
    unittest.main()
