#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""SMC-R sockets between two guests. A server inverts the bytes of a stream, and the client compares them. The kernel
falls back to TCP without a word where it cannot use RDMA: the client asks it (SMC_DIAG), and fails.

usage: smc.py ueid add|remove                   the EID that allows both guests SMC-R version 2
       smc.py serve ADDRESS                     serve until a client says end
       smc.py streams ADDRESS SECONDS NUMBER    so many streams at a time
       smc.py lost ADDRESS SECONDS              a stream that does not outlive the link: it must end in this time
       smc.py end ADDRESS                       end the server
"""

import contextlib
import ctypes
import os
import random
import socket
import struct
import sys
import threading
import time

AF_SMC = 43
NETLINK_SOCK_DIAG, NETLINK_GENERIC = 4, 16
SOCK_DIAG_BY_FAMILY, GENL_ID_CTRL, NLMSG_ERROR, NLMSG_DONE = 20, 16, 2, 3
REQUEST, ACK, DUMP = 1, 4, 0x300
MODES = 'SMC-R', 'TCP', 'SMC-D'
EID = 'SKUA.TEST'.ljust(32)

PORT = 4001
PATIENCE = 60 * int(os.environ.get('SKUA_SLOWNESS', '1'))
PIECE = 1 << 16
INVERTED = bytes(255 - byte for byte in range(256))


def netlink(protocol, kind, flags, body):
    """The bodies of the messages that answer one."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as asks:
        asks.send(struct.pack('<IHHII', 16 + len(body), kind, flags, 1, 0) + body)
        found = []
        while True:
            data = asks.recv(1 << 16)
            while data:
                size, answered, _, _, _ = struct.unpack_from('<IHHII', data)
                text, data = data[16:size], data[(size + 3) & ~3:]
                if answered == NLMSG_DONE:
                    return found
                if answered == NLMSG_ERROR:
                    number, = struct.unpack_from('<i', text)
                    if number:
                        raise OSError(-number, os.strerror(-number))
                    return found
                found.append(text)
            if not flags & (DUMP | ACK):
                return found


def attribute(kind, text):
    data = text.encode() + b'\0'
    return struct.pack('<HH', 4 + len(data), kind) + data.ljust((len(data) + 3) & ~3, b'\0')


def ueid(verb):
    answer, = netlink(NETLINK_GENERIC, GENL_ID_CTRL, REQUEST,
                      struct.pack('<BBH', 3, 1, 0) + attribute(2, 'SMC_GEN_NETLINK'))
    at, family = 4, None
    while at < len(answer):
        size, kind = struct.unpack_from('<HH', answer, at)
        if kind == 1:       # CTRL_ATTR_FAMILY_ID
            family, = struct.unpack_from('<H', answer, at + 4)
        at += (size + 3) & ~3
    command = {'add': 10, 'remove': 11}[verb]       # SMC_NETLINK_ADD_UEID, _REMOVE_UEID
    with contextlib.suppress(FileExistsError):
        netlink(NETLINK_GENERIC, family, REQUEST | ACK, struct.pack('<BBH', command, 1, 0) + attribute(1, EID))


def mode(ours):
    """What a connection uses, and why."""
    inode = os.fstat(ours.fileno()).st_ino
    for text in netlink(NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, REQUEST | DUMP,
                        struct.pack('<BxxB48x', AF_SMC, 0)):
        found, = struct.unpack_from('<Q', text, 56)
        if found == inode:
            reason = ''
            # SMC_DIAG_FALLBACK is the last one
            if text[2] == 1:
                reason = ' for reason %#x, the peer says %#x' % struct.unpack('<II', text[-8:])
            return MODES[text[2]] + reason
    return 'nothing that SMC_DIAG knows'


def make_socket():
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.socket(AF_SMC, socket.SOCK_STREAM, 0)
    if number < 0:
        raise OSError(ctypes.get_errno(), 'socket(AF_SMC)')
    # It takes addresses of IPv4.
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=number)


def serve(address):
    listens = make_socket()
    listens.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listens.bind((address, PORT))
    listens.listen(64)
    threads, kind = [], b''
    while kind != b'e':
        try:
            stream, _ = listens.accept()
        except ConnectionAbortedError:      # in its handshake
            continue
        stream.settimeout(PATIENCE)
        try:
            kind = stream.recv(1)
        except OSError:
            kind = b''
        if kind == b's':
            threads.append(threading.Thread(target=answer, args=(stream,)))
            threads[-1].start()
        else:
            stream.close()
    for thread in threads:
        thread.join()
    listens.close()


def answer(stream):
    # A stream that is lost is the client's to judge.
    with stream, contextlib.suppress(OSError):
        while data := stream.recv(PIECE):
            stream.sendall(data.translate(INVERTED))
        stream.shutdown(socket.SHUT_WR)


class Stream:
    """Bytes of a generator of random numbers, there and back."""

    def __init__(self, address):
        self.address, self.seed, self.wrong, self.total = address, random.random(), None, 0
        self.unsent = None
        self.stream = make_socket()
        self.stream.settimeout(PATIENCE)

    def open(self):
        self.stream.connect((self.address, PORT))
        self.stream.sendall(b's')
        used = mode(self.stream)
        if used != 'SMC-R':
            raise ValueError('a stream uses ' + used)

    def send(self, end):
        numbers = random.Random(self.seed)
        while time.monotonic() < end:
            self.stream.sendall(numbers.randbytes(PIECE))
        self.stream.shutdown(socket.SHUT_WR)

    def _guarded(self, end):
        try:
            self.send(end)
        except OSError as error:
            self.unsent = error

    def run(self, seconds):
        """Until the server ends the stream; what is wrong is an exception."""
        sends = threading.Thread(target=self._guarded, args=(time.monotonic() + seconds,))
        sends.start()
        try:
            numbers, rest = random.Random(self.seed), b''
            while data := self.stream.recv(PIECE):
                while len(rest) < len(data):
                    rest += numbers.randbytes(PIECE).translate(INVERTED)
                if data != rest[:len(data)]:
                    raise ValueError('bytes of a stream are wrong, at %d' % self.total)
                rest, self.total = rest[len(data):], self.total + len(data)
        finally:
            with contextlib.suppress(OSError):
                self.stream.shutdown(socket.SHUT_RDWR)
            sends.join()
            self.stream.close()
        # The kernel tells only one of both threads of an error. The other one sees the end of the stream.
        if self.unsent:
            raise self.unsent
        if rest or not self.total:
            raise ValueError('a stream ended after %d bytes' % self.total)

    def attempt(self, work, *args):
        """Unless an earlier attempt went wrong."""
        try:
            if not self.wrong:
                work(self, *args)
        except (OSError, ValueError) as error:
            self.wrong = error


def attempt_all(those, work, *args):
    threads = [threading.Thread(target=one.attempt, args=(work, *args)) for one in those]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def streams(address, seconds, number):
    those = [Stream(address) for _ in range(int(number))]
    # All are open before one sends. A fault comes with the first bytes, and the kernel would not tell a handshake of it.
    attempt_all(those, Stream.open)
    attempt_all(those, Stream.run, float(seconds))
    print('%d streams, %d MB each way' % (len(those), sum(one.total for one in those) / 1e6))
    wrong = [str(one.wrong) for one in those if one.wrong]
    if wrong:
        sys.exit('\n'.join(wrong))


def lost(address, seconds):
    one, begun = Stream(address), time.monotonic()
    one.open()
    try:
        one.run(float(seconds))
    except TimeoutError:
        raise
    except OSError as error:
        print('%s after %.1f s' % (error, time.monotonic() - begun))
        return
    sys.exit('the stream outlived the link')


def end(address):
    with make_socket() as stream:
        stream.connect((address, PORT))
        stream.sendall(b'e')
        stream.recv(1)


if __name__ == '__main__':
    COMMANDS = {one.__name__: one for one in (ueid, serve, streams, lost, end)}
    if len(sys.argv) < 3 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
