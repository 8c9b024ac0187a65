"""Output of a guest, on its way to the lab's own."""

import os
import queue
import threading


class Writer:
    """Passes bytes on to a file descriptor without ever making the caller wait: a guest that
    writes to a port stands still until it is read."""

    def __init__(self, fd):
        self.queue = queue.Queue()
        self.thread = threading.Thread(target=self._write, args=(fd,), daemon=True)
        self.thread.start()

    def _write(self, fd):
        while True:
            data = self.queue.get()
            if data is None:
                return
            try:
                while data:
                    data = data[os.write(fd, data):]
            except OSError:
                return

    def __call__(self, data):
        self.queue.put(data)

    def close(self):
        self.queue.put(None)
        self.thread.join()
