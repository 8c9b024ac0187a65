"""Which tests skip themselves, and whether they may: selftests/skips lists those that may.

Tests report their results in four formats, which are found in the log of a stage:
  kselftests   TAP; run_selftests.sh prints "# PROGRAM" first
  pyverbs      unittest, with tests of the package `tests`
  lab          unittest, with tests of tools/lab/tests
  host         cmocka; run-test.sh prints "== PROGRAM" first
"""

import collections
import re

from skualab.host import paths

LIST = paths.repo('selftests/skips')
# What a line of the list says. may_run: the machine decides whether the test is skipped. newer: the older rdma-core
# does not have the test.
Listed = collections.namedtuple('Listed', 'reason may_run newer', defaults=[False])
LINE = re.compile(r'(\w+)([?+])? (.+?): (.+)')

PROGRAM = re.compile(r'(?:#|==) (test_[\w.]+)$')
TAP = re.compile(r'(?:not )?ok \d+ (?:- )?(.*?)(?: # SKIP ?(.*))?$')
CMOCKA = re.compile(r'\[ +(OK|FAILED|SKIPPED) +\] (?:[A-Z0-9 -]+: )?(\w+)$')
# Python before 3.11 does not repeat the name of the test behind its class.
UNITTEST = re.compile(r'(\w+) \((tests\.)?([\w.]+?)(?:\.\1)?\)')
# What a test prints, and its description, may stand between its name and its result.
RESULT = re.compile(r"""(?:^|\.\.\. )(?:ok|FAIL|ERROR|skipped (['"])(.*)\1)$""")


def allowed(path=LIST):
    """{(suite, test): Listed}"""
    found = {}
    with open(path) as file:
        for number, text in enumerate(file, 1):
            if text.strip() and not text.startswith('#'):
                line = LINE.fullmatch(text.strip())
                if not line:
                    raise ValueError('%s:%d: the line must be "SUITE TEST: REASON"' % (path, number))
                found[line[1], line[3]] = Listed(line[4], line[2] == '?', line[2] == '+')
    return found


def results(log):
    """{(suite, test): the reason of its skip, or None if it ran}. cmocka gives no reason: it is ''."""
    found, program, test = {}, '', None
    for text in log.splitlines():
        if match := PROGRAM.match(text):
            program = match[1] + ' '
        elif match := TAP.match(text):
            found['kselftests', program + match[1]] = match[2]
        elif match := CMOCKA.match(text):
            found['host', program + match[2]] = '' if match[1] == 'SKIPPED' else None
        else:
            if match := UNITTEST.match(text):
                test = 'pyverbs' if match[2] else 'lab', '%s.%s' % (match[3], match[1])
            if test and (match := RESULT.search(text)):
                found[test], test = match[2], None
    return found


def _group(suite, test):
    """The suite and the program or module of a test. All tests of one group run in one stage."""
    return suite, re.split('[ .]', test)[0]


def faults(log, skipped, listed):
    """Where a log differs from the list of skips. @skipped is how many the stage counted, or None."""
    wrong, found = [], results(log)
    for (suite, test), reason in found.items():
        line = listed.get((suite, test))
        if reason is None:
            if line and not line.may_run:
                wrong.append('%s %s ran, but selftests/skips lists it' % (suite, test))
        elif not line or reason not in ('', line.reason):
            wrong.append('%s %s was skipped, and selftests/skips does not list it: %s' % (suite, test, reason))
    groups = {_group(*one) for one in found}
    wrong += ['selftests/skips lists %s %s, which does not exist' % one for one, line in listed.items()
              if one not in found and _group(*one) in groups and not line.newer]
    told = sum(reason is not None for reason in found.values())
    if skipped not in (None, told):
        wrong.append('%d tests were skipped, but the log names %d of them' % (skipped, told))
    return wrong
