"""The skuad that serves the NICs of guests.

Assumed of skuad: --device name=,socket=,mac=,link=; --control PATH; --ready-fd N; of skuactl:
--socket PATH, `counters NAME --json`, and `capture NAME -w FILE`, which says "capturing" on
standard error once it does.
"""

import json
import os
import select
import subprocess
import time

from skualab.host import paths
from skualab.host.say import LabError
from skualab.host.sockets import new_place, remove_place
from skualab.roots import chroot, program

SKUAD = os.path.join(paths.SKUAD, 'skuad')
SKUACTL = os.path.join(paths.SKUAD, 'skuactl')


class Skuad:
    """One skuad for the NICs of one run. Its sockets have a short directory of their own."""

    def __init__(self, nics, directory, place=None, within=(), binds=()):
        self.nics, self.directory = nics, directory
        self.place = place or new_place()
        self.control = self.place + '/control'
        self.log = open(os.path.join(directory, 'skuad.log'), 'w')
        self.captures = []
        command = [SKUAD, '--control', self.control]
        for nic in nics:
            words = ['%s=%s' % item for item in nic.options.items()] + ['socket=' + self.socket(nic)]
            command += ['--device', ','.join(words)]
        ready, told = os.pipe()
        self.process = program.Process(command + ['--ready-fd', str(told)], self.log, binds=[self.place, *binds], fds=[told],
                                       within=within)
        self.process.go_first()
        os.close(told)
        readable, _, _ = select.select([ready], [], [], 20)
        started = readable and os.read(ready, 1)
        os.close(ready)
        if not started:
            self.stop()
            with open(self.log.name) as file:
                raise LabError('skuad did not start: %s' % (
                    file.read().strip().splitlines() or ['it printed nothing'])[-1])

    def socket(self, nic):
        return '%s/%d' % (self.place, self.nics.index(nic))

    def capture(self):
        """Capture every NIC's packets from here on."""
        for nic in self.nics:
            log = os.path.join(self.directory, 'capture-%s.log' % nic.name)
            file = open(log, 'w')
            self.captures.append(program.Process(
                [SKUACTL, '--socket', self.control, 'capture', nic.name,
                 '-w', os.path.join(self.directory, nic.name + '.pcapng')], file, binds=[self.place, self.directory]))
            file.close()
            end = time.monotonic() + 10
            while 'capturing' not in open(log).read():
                if time.monotonic() > end or self.captures[-1].ended() is not None:
                    raise LabError('skuactl could not capture the packets of %s: %s' % (nic.name, open(log).read().strip()))
                time.sleep(0.02)

    def counters(self):
        """{name: {counter: value}} of every NIC."""
        return {nic.name: flat(self.ask('counters', nic.name)) for nic in self.nics}

    def ask(self, *words):
        done = chroot.run([SKUACTL, '--socket', self.control, '--json', *words], binds=[self.place],
                          stdout=subprocess.PIPE, stderr=self.log, text=True, timeout=20)
        if done.returncode:
            raise LabError('skuactl %s failed; %s says why' % (' '.join(words), self.log.name))
        return json.loads(done.stdout)

    def ended(self):
        return self.process.ended()

    def stop(self):
        for capture in self.captures:
            capture.stop()
        self.process.stop()
        self.log.close()
        remove_place(self.place)


def flat(answer, found=None):
    """The numbers of an answer, by name, however deep they lie."""
    found = {} if found is None else found
    for key, value in (answer.items() if isinstance(answer, dict) else enumerate(answer)):
        if isinstance(value, (dict, list)):
            flat(value, found)
        elif isinstance(value, int) and not isinstance(value, bool):
            found[key] = value
    return found
