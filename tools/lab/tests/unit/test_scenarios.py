"""The guide's table of scenarios says what the scripts have."""

import os
import re
import unittest

from skualab.checks.table import CHECKS
from skualab.host import paths
from skualab.products.kernels import DEBUG
from skualab.target.distro import DISTRO
from testing import script

ULP = paths.repo('selftests/ulp')
KERNELS = [*DISTRO.series, *DEBUG]
# What scripts call the faults of the wire.
WORDS = {'flapping': 'link', 'outage': 'link', 'lossy': 'loss', 'loss': 'loss', '$loss': 'loss'}
ROW = re.compile(r'^   \* - .*?(?=^   \* - |^\S)', re.M | re.S)


def rows():
    """{command: (kernels, faults)} of the table."""
    with open(paths.repo('Documentation/user/consumers.rst')) as file:
        text = file.read().split('All scenarios\n')[1].split('\nNetwork users of the kernel\n')[0]
    found = {}
    for row in ROW.findall(text + '\nend')[1:]:
        _, kernels, faults, command = (' '.join(cell.split()).replace('``', '') for cell in row.split('\n     - '))
        found[command] = kernels.split(', '), faults.split(', ')
    return found


def ran():
    """{(script, scenario): kernels}, by the commands of make check's stages. A script may be its only scenario. A stage
    without faults counts for none."""
    storage, ulp = (script('tests/' + name).SCENARIOS for name in ('test-storage', 'test-ulp'))
    there = {'test-storage': lambda kernel: [one.name for one in storage],
             'test-ulp': lambda kernel: ulp.get(kernel, ()),
             'test-middleware': lambda kernel: [name[:-3] for name in os.listdir(ULP) if name.endswith('.sh')],
             'test-mpi-death': lambda kernel: ['test-mpi-death']}
    found = {}
    for one in CHECKS:
        words = one.command if isinstance(one.command, list) else []
        name = os.path.basename(words[1]) if len(words) > 1 else ''
        if name in there and '--no-faults' not in words:
            kernel = words[words.index('--kernel') + 1] if '--kernel' in words else DISTRO.kernel
            known = there[name](kernel)
            for scenario in set(known) & set(words) or known:
                found.setdefault((name, scenario), set()).add(kernel)
    return {key: [kernel for kernel in KERNELS if kernel in of] for key, of in found.items()}


def wire(*names):
    """The faults of the wire, in the order in which scripts of selftests/ulp make them."""
    text = ''
    for name in names:
        with open(os.path.join(ULP, name)) as file:
            text += file.read()
    made = re.findall(r"^\s*t '.*' (flapping|lossy) |^\s*for fault in (outage) (\$?loss);", text, re.M)
    return list(dict.fromkeys(WORDS[word] for words in made for word in words if word))


class Scenarios(unittest.TestCase):
    maxDiff = None

    def told(self, name):
        """{scenario: faults} of a script's rows."""
        return {command.split()[-1]: faults for command, (_, faults) in rows().items() if command.startswith(name)}

    def test_kernels(self):
        told = {(command.split()[0], command.split()[-1]): kernels for command, (kernels, _) in rows().items()}
        self.assertEqual(told, ran())

    def test_storage(self):
        words = {'link down, up': 'link', '1% lost': 'loss', 'server dies': 'death'}
        self.assertEqual(self.told('test-storage'), {
            one.name: [words.get(name, name).replace(' reset', '').replace(', no I/O', ' without I/O')
                       for name, _ in one.faults] for one in script('tests/test-storage').SCENARIOS})

    def test_ulp(self):
        ulp = script('tests/test-ulp')
        self.assertEqual(self.told('test-ulp'), {
            name: wire(name + '.sh') + ['death']
            for names in ulp.SCENARIOS.values() for name in names})

    def test_user_space(self):
        told = self.told('test-middleware')
        self.assertGreater(len(told), 5)
        for name in told:
            jobs = ['mpi/jobs.sh'] * (name in ('openmpi', 'mpich'))
            self.assertEqual(told[name], wire(name + '.sh', *jobs), name)
        self.assertEqual(self.told('test-mpi-death'), {'test-mpi-death': ['death']})


if __name__ == '__main__':
    unittest.main()
