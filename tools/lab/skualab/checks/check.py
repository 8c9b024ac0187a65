"""A stage of make check: a command with a budget.

The command ends its output with "N passed, N failed, N skipped", or counts as one test. A stage that
passed and whose inputs are the same is not run again: its numbers stand. One that failed is run again
the next time, but never twice in one check. Of a guest's stage it is known, too, whether it passed with other sources
of skuad and everything else as it is: make check leaves such a stage out, unless it is a smoke test of the device
(report.py). What a stage left is in build/check/STAGE/: `log`, and for
guests the artefacts of `lab run`. A skip fails its stage unless selftests/skips lists it, and so does a listed test
that ran (skips.py).
"""

import json
import os
import re
import shutil
import signal
import subprocess

from skualab.checks import skips
from skualab.host import paths, say, secrets
from skualab.host.family import popen
from skualab.host.lock import held
from skualab.products import programs
from skualab.roots import root
from skualab.roots.stage import digest, tree

OUT = os.path.join(paths.BUILD, 'check')
_running = set()        # the processes of stages
SUM = re.compile(r'^(\d+) passed, (\d+) failed, (\d+) skipped$', re.M)


class Check:
    """A stage: its name, its budget in seconds, what it depends on, and its command, a list or a
    function that returns one (after what it needs is built). `full` ones are not in make check,
    `debug` ones are make check-debug. A command that `explains_skips` has its own list of them. Of
    those with the same `writes` one runs at a time; beside one that is `alone`, none does. `smoke`: of
    a stage with guests, whether it is a smoke test of the device; None: it has no guests. It may make
    what others need, a stage of roots/stage.py: `makes`."""

    def __init__(self, name, budget, inputs, command, needs=(), full=False, debug=False, explains_skips=False,
                 writes=None, alone=False, smoke=None, makes=None):
        self.name, self.budget, self.inputs = name, budget, inputs
        self.writes, self.alone, self.smoke, self.makes = writes, alone, smoke, makes
        self.command, self.needs, self.full, self.debug = command, needs, full, debug
        self.explains_skips = explains_skips
        self.directory = os.path.join(OUT, name)

    def _depends(self):
        return [*(self.command() if callable(self.command) else self.command), *self.inputs]

    def hash(self, *without):
        # What needs nothing may run while the root is being made.
        versions = [root.VERSIONS] if self.needs else []
        return digest(*(given for given in [*versions, *self._depends()] if given not in without))

    def sources(self):
        """A hash of its inputs, whichever root there is, and if there is none."""
        return self.hash(root.VERSIONS)

    def _hash_without_skuad(self):
        return self.hash(programs.SKUAD_SOURCES)

    def depends_on(self, path):
        """Whether a file, which may be gone, is one of its inputs or below one."""
        if callable(self.command) and not os.path.exists(root.VERSIONS):
            return True     # what it will run is known when there is a root
        return any(given.has(path) for given in map(tree, self._depends()) if os.path.isabs(given.path))

    def _passed(self):
        """What is known of the last run, if it passed; else nothing."""
        try:
            with open(os.path.join(self.directory, 'passed')) as file:
                passed = json.load(file)
            # The list of skips may have changed since.
            return {} if self._wrong_skips(passed['counts'][2]) else passed
        except (OSError, ValueError):
            return {}

    def kept(self, hashed):
        """The counts of an earlier pass with the same inputs, or None."""
        passed = self._passed()
        return passed['counts'] if passed.get('hash') == hashed else None

    def passed_with_another_skuad(self):
        """Whether nothing but the sources of skuad differs from the inputs of its last run, which passed."""
        passed = self._passed()
        return passed.get('without_skuad') == self._hash_without_skuad() and passed['hash'] != self.hash()

    def _wrong_skips(self, skipped):
        """What the log tells of skips, and of tests that should have skipped themselves."""
        with open(os.path.join(self.directory, 'log'), errors='replace') as file:
            return [] if self.explains_skips else skips.faults(file.read(), skipped, skips.allowed())

    def _begin(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)

    def run(self):
        """Returns ([passed, failed, skipped], kept)."""
        try:
            for stage in self.needs:
                stage.run()
        except say.LabError as error:
            # The other stages may still tell something.
            self._begin()
            with open(os.path.join(self.directory, 'log'), 'w') as file:
                file.write('%s\n' % secrets.hide(str(error)))
            return [0, 1, 0], False
        with held(self.directory + '.lock', 'runs the stage %s' % self.name):
            if not self.writes:
                return self._run_alone()
            # Another lab may run another stage that does.
            where = os.path.join(os.path.dirname(self.directory), 'writes-%s.lock' % self.writes)
            with held(where, 'runs a stage that writes to %s' % self.writes):
                return self._run_alone()

    def _run_alone(self):
        hashed = self.hash()
        counts = self.kept(hashed)
        if counts:
            return counts, True
        self._begin()
        log = os.path.join(self.directory, 'log')
        command = self.command() if callable(self.command) else self.command
        try:
            status = _run(command, log, self.budget, self.name)
        finally:
            secrets.hide_in(log)
        with open(log, errors='replace') as file:
            found = SUM.findall(file.read())
        counts = [int(word) for word in found[-1]] if found else [int(status == 0), int(status != 0), 0]
        if not counts[1] and (status or not counts[0]):
            counts[1] = 1       # it died on the way, or tested nothing
        if wrong := self._wrong_skips(counts[2] if found else None):
            counts[1] += len(wrong)
            with open(log, 'a') as file:
                file.writelines('not ok - %s\n' % text for text in wrong)
        # Whoever edits while it runs has not tested what is there now.
        if not counts[1] and self.hash() == hashed:
            self._keep(counts)
        return counts, False

    def _keep(self, counts):
        with open(os.path.join(self.directory, 'passed'), 'w') as file:
            json.dump({'hash': self.hash(), 'without_skuad': self._hash_without_skuad(), 'counts': counts}, file)

    def passed_elsewhere(self, sources, output):
        """Another stage ran its command, and it passed, with what sources() was before, and printed this."""
        with held(self.directory + '.lock', 'keeps the pass of %s' % self.name):
            if self.sources() != sources:
                return
            self._begin()
            with open(os.path.join(self.directory, 'log'), 'w') as file:
                file.write(secrets.hide(output))
            self._keep([1, 0, 0])


def _run(command, log, budget, name):
    """The status of a command, whose whole family ends with its budget."""
    with open(log, 'w') as file, say.Progress(name, log, budget):
        process, life = popen(command, flags=['group'], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                              cwd=paths.REPO, start_new_session=True)
        _running.add(process)
        try:
            return process.wait(budget)
        except subprocess.TimeoutExpired:
            file.write('the stage took more than its budget of %d s\n' % budget)
            return 124
        finally:
            if process.returncode is None:      # over its budget, or check itself is ended
                _end(process)
            _running.discard(process)
            os.close(life)


def end():
    """End the commands of all stages that run."""
    for process in list(_running):
        _end(process)


def _end(process):
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
