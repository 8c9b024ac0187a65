"""Nodes: guests of one skuad, each with a name, its NICs, its share and its command."""

import os
import threading

from skualab.host import failure
from skualab.host.say import LabError
from skualab.machines import guest
from skualab.runs import run, scene


class Prefixed:
    """Passes whole lines on, each with a node's name in front."""

    def __init__(self, name, width, writer):
        self.head, self.writer, self.rest = ('%-*s | ' % (width, name)).encode(), writer, b''

    def __call__(self, data):
        *lines, self.rest = (self.rest + data).split(b'\n')
        if lines:
            self.writer(b''.join(self.head + line + b'\n' for line in lines))

    def close(self):
        if self.rest:
            self(b'\n')


class Node:
    """A guest: its scene, its command, and how that ended. Its share is one of its options."""

    def __init__(self, name, directory, options, nics, command=None):
        self.name, self.command = name, command
        self.outcome = None         # (status, cause, detail); None: not ended, or for another's sake
        self.play = scene.Scene(os.path.join(directory, name), options, nics)

    def boot(self, end, skuad):
        self.guarded(lambda: self.play.start(end, skuad) or self.play.guest.run('hostname ' + self.name, end))

    def work(self, end, writers, before='', width=0):
        """Run its command; `before` is a script that comes first."""
        out, err = (Prefixed(self.name, width, writer) for writer in writers)

        def command():
            try:
                status = self.play.guest.run(before + self.play.script(self.command), end, out, err)
            finally:
                out.close()
                err.close()
            self.outcome = status, 'command', 'status %d' % status

        self.guarded(command)

    def guarded(self, step):
        """A step whose failure is the node's outcome."""
        try:
            step()
        except guest.Timeout:
            self.outcome = run.TIMEOUT, 'timeout', 'the guest did not come up, or its command did not end, in time'
        except guest.GuestEnded:
            self.outcome = run.LAB, 'lab', self.play.guest.why()
        except (LabError, OSError) as error:
            self.outcome = run.LAB, 'lab', failure.told(error)[1]
        fault = self.play.guest and self.play.guest.fault
        if fault:
            self.outcome = run.KERNEL, 'kernel', fault

    def failed(self):
        return bool(self.outcome and self.outcome[0])


class Nodes:
    """The nodes of a skuad, in their order; in a context, at whose end all of them end."""

    def __init__(self, nodes, skuad):
        self.nodes, self.skuad = list(nodes), skuad

    def __iter__(self):
        return iter(self.nodes)

    def __getitem__(self, name):
        return next(node for node in self.nodes if node.name == name)

    def guests(self):
        return [node.play.guest for node in self.nodes]

    def boot(self, end):
        """All at once. False if one did not come up."""
        for thread in together((node.boot, end, self.skuad) for node in self.nodes):
            thread.join()
        return not any(node.outcome for node in self.nodes)

    def must_boot(self, end):
        """LabError, with the status that lab run has for it; a panic of one may be why others did not come up."""
        if not self.boot(end):
            failed = [node for node in self.nodes if node.outcome]
            worst = next((node for node in failed if node.outcome[0] == run.KERNEL), failed[0])
            raise LabError('a guest did not come up: %s; its logs are in %s' % (
                ', '.join('%s: %s' % (node.name, node.outcome[2]) for node in failed), worst.play.directory), worst.outcome[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.play.close()
        self.skuad.stop()


def together(steps):
    """A thread for each (function, words...)."""
    threads = [threading.Thread(target=step, args=words, daemon=True) for step, *words in steps]
    for thread in threads:
        thread.start()
    return threads
