"""What the lab tells the person: one line a step, on standard error.

Standard output belongs to the command that runs in the guest, and to tables.
"""

import os
import shutil
import sys
import threading
import time

START = time.monotonic()


class LabError(Exception):
    """Something the person can act on: one line, no traceback. And the lab's exit status."""

    def __init__(self, text, status=125):
        super().__init__(text)
        self.status = status


def line(text):
    try:
        sys.stderr.write('lab: %s\n' % text)
        sys.stderr.flush()
    except OSError:
        pass            # the terminal is gone, or the disk is full: there is nobody to tell


def seconds(value):
    return '%.1f s' % value if value < 100 else '%d min %02d s' % divmod(round(value), 60)


class Progress:
    """While a long step runs: its name, its time and the last line of its log. Without a budget: what @told says.

    On a terminal one line with all steps that run is rewritten every second; elsewhere each prints one every 15 s.
    """

    shown = {}          # what the steps that run say, on a terminal

    def __init__(self, name, log, budget=None, told=None):
        self.name, self.log, self.budget, self.told = name, log, budget, told
        self.tty = sys.stderr.isatty()
        self.stop = threading.Event()
        self.start = time.monotonic()
        self.thread = threading.Thread(target=self._show, daemon=True)

    def _last(self):
        try:
            with open(self.log, 'rb') as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - 400))
                lines = file.read().decode(errors='replace').replace('\r', '\n').split('\n')
        except OSError:
            return ''
        lines = [text.strip() for text in lines if text.strip()]
        return lines[-1][:70] if lines else ''

    def _show(self):
        while not self.stop.wait(1 if self.tty else 15):
            text = '%s: %d s%s: %s' % (
                self.name, time.monotonic() - self.start, ' of at most %d' % self.budget if self.budget else '',
                self.told() if self.told else self._last())
            if self.tty:
                self.shown[self] = text
                self._rewrite()
            else:
                line(text)

    def _rewrite(self):
        steps = list(self.shown.values())
        each = shutil.get_terminal_size().columns // max(len(steps), 1) - 7
        try:
            sys.stderr.write('\r\033[K' + ('lab: ' + ' | '.join(text[:each] for text in steps) if steps else ''))
            sys.stderr.flush()
        except OSError:
            pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        if self.tty:
            self.shown.pop(self, None)
            self._rewrite()
