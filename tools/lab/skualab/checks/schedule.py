"""Which stages run at the same time.

A guest under TCG keeps about one processor busy, and waits a lot. So two stages run at once where the machine has
room for two, in the order of the table. Stages that write in the same place take turns. A stage that measures has the
machine to itself. What a stage makes for others, they wait for, and for no more of it.
"""

import os
import queue
import threading
import time

from skualab.checks import check

ROOM = 12 << 30         # bytes of memory for two stages: two guests of up to 5 GiB, their skuads, and a compiler
LOOK_SECONDS = 1        # between looks at what a stage has made for others


def _available():
    """Bytes of memory that may be used."""
    with open('/proc/meminfo') as file:
        return next(int(text.split()[1]) << 10 for text in file if text.startswith('MemAvailable:'))


def places():
    """How many stages this machine can run at once."""
    return 2 if len(os.sched_getaffinity(0)) > 1 and _available() >= ROOM else 1


def _beside(one, other):
    return not one.alone and not other.alone and (not one.writes or one.writes != other.writes) \
        and not _awaits(one, other) and not _awaits(other, one)


def _awaits(one, other):
    return other.makes in one.needs and not other.makes.is_current()


class Schedule:
    def __init__(self, stages):
        self.waiting, self.running, self.ended = list(stages), [], queue.SimpleQueue()

    def _next(self):
        """The first stage that may begin now, or None."""
        return next((one for one in self.waiting if all(_beside(one, other) for other in self.running)), None)

    def _work(self, one):
        began = time.monotonic()
        try:
            result = one.run()
        except BaseException as error:          # pylint: disable=broad-except
            result = error
        self.ended.put((one, result, time.monotonic() - began))

    def _begin(self):
        for _ in range(places() - len(self.running)):
            one = self._next()
            if not one:
                return
            self.waiting.remove(one)
            self.running.append(one)
            threading.Thread(target=self._work, args=(one,), daemon=True).start()

    def run(self):
        """Yields (stage, [passed, failed, skipped], kept, seconds), as stages end."""
        try:
            while self.waiting or self.running:
                self._begin()
                try:
                    one, result, seconds = self.ended.get(timeout=LOOK_SECONDS)
                except queue.Empty:
                    continue
                self.running.remove(one)
                if isinstance(result, BaseException):
                    raise result
                yield (one, *result, seconds)
        finally:
            check.end()         # where the lab is interrupted
