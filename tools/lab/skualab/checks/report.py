"""make check: runs stages, and tells how each went and where to look."""

import os
import re
import time

from skualab.checks import changed
from skualab.checks.schedule import Schedule
from skualab.checks.table import CHECKS
from skualab.host import paths, say

# A test that failed: scripts say why below this line, kselftest_harness.h and cmocka above, unittest down to an empty
# line. And what run_selftests.sh says of a script.
NOT_OK, FAILED = re.compile(r'not ok |# \S+ ended with status '), re.compile(r'\[  FAILED  \]')
OTHER = re.compile(r'ok |#  RUN |#            OK ')
UNITTEST = re.compile(r'(FAIL|ERROR): test')


def _reach(texts, i, step, most):
    """The last of at most so many lines from line i on, or back, that do not tell of another test."""
    for _ in range(most):
        if not 0 <= i + step < len(texts) or OTHER.match(texts[i + step]):
            break
        i += step
    return i


def failures(log, each=8, most=40):
    """The lines of a log that tell of failed tests: of each up to @each lines before and after it that say why,
    and all that unittest says."""
    with open(log, errors='replace') as file:
        texts = file.readlines()
    shown = set()
    for i, text in enumerate(texts):
        if NOT_OK.match(text):
            shown.update(range(_reach(texts, i, -1, each), _reach(texts, i, 1, each) + 1))
        elif FAILED.match(text):
            shown.update(range(max(i - each, 0), i + 1))
        elif UNITTEST.match(text):
            shown.update(range(i, texts.index('\n', i) if '\n' in texts[i:] else len(texts)))
    return [texts[i] for i in sorted(shown)[:most]]


def _tail(path, lines):
    with open(path, errors='replace') as file:
        return ''.join('    ' + text for text in file.readlines()[-lines:]).rstrip()


def _left_out(stages):
    """Of a guest's stages those that make check need not run when skuad alone changed: its own tests run then, and
    those in guests that are marked as smoke tests."""
    return [one for one in stages if one.smoke is False and one.passed_with_another_skuad()]


def check(names, full=False, debug=False, since=None, whole=False):
    """Run stages by name, or all; debug: those under the debug kernel; since: of these, those that depend on what
    changed since a revision of git; whole: leave none out. Returns an exit status."""
    if debug:
        names = [*names, *(one.name for one in CHECKS if one.debug)]
    unknown = set(names) - {one.name for one in CHECKS}
    if unknown:
        raise say.LabError('there is no stage %s; the stages are %s' % (
            ', '.join(sorted(unknown)), ', '.join(one.name for one in CHECKS)))
    total, failed, start = [0, 0, 0], [], time.monotonic()
    chosen = [one for one in CHECKS if (one.name in names if names else full or not one.full)]
    if since is not None:
        chosen = changed.only(chosen, since)
        if not chosen:
            return 0
    left_out = [] if names or full or whole or since is not None else _left_out(chosen)
    chosen = [one for one in chosen if one not in left_out]
    for one, counts, kept, took in Schedule(chosen).run():
        total = [a + b for a, b in zip(total, counts)]
        print('%-16s %d passed, %d failed, %d skipped, %s' % (
            (one.name, *counts, 'as before' if kept else '%.0f s of %d' % (took, one.budget))), flush=True)
        if counts[1]:
            failed.append(os.path.relpath(one.directory, paths.REPO))
    # Last, since the end is often all that somebody else's machine shows of what it printed.
    for place in failed:
        log = os.path.join(paths.REPO, place, 'log')
        print('failed: %s, artefacts in %s, the end of its log:\n%s' % (os.path.basename(place), place, _tail(log, 8)))
        print(''.join('    ' + text for text in failures(log)), end='')
    if left_out:
        print('%d stages were left out and are not counted, because they passed with an earlier skuad; '
              'run them with make check ALL=1: %s' % (len(left_out), ' '.join(one.name for one in left_out)))
    print('%s in all' % say.seconds(time.monotonic() - start))
    print('%d passed, %d failed, %d skipped' % tuple(total))
    return 1 if total[1] or not total[0] else 0
