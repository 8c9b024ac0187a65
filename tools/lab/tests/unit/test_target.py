"""Facts of an architecture and of a distribution stand in skualab/target: none in the lab, bench and mutants."""

import os
import re
import unittest

from skualab.target.arch import ARCH
from skualab.target.distro import DISTRO
from testing import LAB

TARGET = os.path.join(LAB, 'skualab/target')
FACTS = [ARCH.name, ARCH.debian, ARCH.emulator_package, ARCH.firmware_package, ARCH.machine, ARCH.console,
         ARCH.kernel_image, *ARCH.kvm_modules, DISTRO.stable, DISTRO.testing, *DISTRO.series]
ROLES = ["'%s'" % role for role in DISTRO.rdma_cores]


def told(path):
    """The facts that a file tells of."""
    with open(path, errors='replace') as file:
        text = file.read()
    words = FACTS + (ROLES if '/skualab/' in path else [])
    return [word for word in words if re.search(r'(?<![\w.])%s(?![\w])' % re.escape(word), text)]


def files(*places):
    for place in places:
        for where, _, names in os.walk(place):
            yield from (os.path.join(where, name) for name in names if '__pycache__' not in where)


class Target(unittest.TestCase):
    def test_facts_stand_in_one_place(self):
        for path in files(LAB, *(os.path.join(LAB, '..', name) for name in ('bench', 'mutants'))):
            if os.path.dirname(path) != TARGET:
                with self.subTest(os.path.relpath(path, LAB)):
                    self.assertEqual(told(path), [])

    def test_each_fact_is_seen_where_it_stands(self):
        self.assertEqual(sorted({word for path in files(TARGET) for word in told(path)}), sorted(FACTS + ROLES))
