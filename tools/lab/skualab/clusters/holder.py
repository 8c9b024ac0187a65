"""The process that holds a cluster: it boots the guests, watches them, and ends with all of them.

It is a child that `lab up` leaves behind when all guests are up. A signal ends it, and it ends QEMU, skuad and ssh. If
it is killed, their keepers end them (host/keeper.py), and its lock is free (state.py).
"""

import threading
import time

from skualab.clusters import login
from skualab.host.say import LabError
from skualab.machines import guest, ssh
from skualab.machines.skuad import Skuad
from skualab.runs import scene
from skualab.runs.nodes import Node, Nodes, together


class Holder:
    """tell: a function of a line, which whoever started us reads."""

    def __init__(self, cluster, plan, options, tell):
        self.cluster, self.tell = cluster, tell
        keys = ssh.Keys(plan.keys)
        self.state = {'name': cluster.name, 'since': time.time(), 'up': False, 'env': options.env,
                      'share': options.share, 'fault': None, 'nodes': {}}
        nodes = []
        for one in plan.guests:
            own = scene.Options(**{**vars(options), 'cpus': one.cpus, 'memory': one.memory, 'hosts': plan.hosts,
                                   'keys': keys, 'lines': [login.PORT]})
            nodes.append(Node(one.name, cluster.directory, own, one.nics))
            self.state['nodes'][one.name] = {'addresses': [nic.ipv4 for nic in one.nics], 'memory': one.memory,
                                             'ended': None, 'fault': None}
        self.nodes = Nodes(nodes, Skuad(plan.nics(), cluster.directory))
        self.state['place'] = self.nodes.skuad.place
        self.state['control'] = self.nodes.skuad.control
        cluster.write(self.state)
        self.capture, self.keys, self.masters = options.capture, keys, []
        self.lock = threading.Lock()        # of the state
        self.watches, self.closing = [], threading.Event()

    def _boot(self, node, end):
        def open_way():
            self.masters.append(login.Master(node.name, node.play.guest, self.keys, self.state['place'],
                                             node.play.directory, end))
            self.tell('%s is ready' % node.name)

        node.boot(end, self.nodes.skuad)
        if not node.outcome:
            node.guarded(open_way)

    def boot(self, seconds):
        if self.capture:
            self.nodes.skuad.capture()
        end = time.monotonic() + seconds
        for thread in together((self._boot, node, end) for node in self.nodes):
            thread.join()
        for node in self.nodes:
            if node.outcome:
                raise LabError('%s: %s' % (node.name, node.outcome[2]), node.outcome[0])
        self.state['up'] = True
        self.cluster.write(self.state)

    def _watch(self, node):
        """Take what a guest says, and write down how it ended."""
        machine = node.play.guest
        try:
            while not self.closing.is_set():
                machine.idle(0.5)
                machine.scan()
                if machine.fault != self.state['nodes'][node.name]['fault']:
                    self._note(node, fault=machine.fault)
        except guest.GuestEnded:
            self._note(node, fault=machine.fault, ended=machine.why())

    def _note(self, node, **known):
        with self.lock:
            self.state['nodes'][node.name].update(known)
            self.cluster.write(self.state)

    def hold(self):
        """Until a signal."""
        self.watches = together((self._watch, node) for node in self.nodes)
        while True:
            if self.nodes.skuad.ended() is not None and not self.state['fault']:
                with self.lock:
                    self.state['fault'] = 'skuad ended with status %d' % self.nodes.skuad.ended()
                    self.cluster.write(self.state)
            time.sleep(0.5)

    def close(self):
        self.closing.set()
        for thread in self.watches:
            thread.join()
        for master in self.masters:
            master.stop()
        self.nodes.__exit__()
        self.cluster.close(self.state)
