#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reliable datagram sockets (RDS) over RDMA between two guests. A server answers each message with its bytes
inverted. A message may also name memory of the client: the server reads that by RDMA, inverts the bytes, and writes
them back by RDMA. The client compares every byte.

usage: rds.py serve ADDRESS                  serve until a client says end
       rds.py reach ADDRESS                  wait for the server at ADDRESS
       rds.py messages ADDRESS SECONDS       messages to the server at ADDRESS, several at a time
       rds.py remote ADDRESS SECONDS         messages that name memory
       rds.py shows ADDRESS                  is there an RDMA connection with ADDRESS?
       rds.py end ADDRESS                    end the server
"""

import collections
import ctypes
import errno
import mmap
import os
import random
import socket
import struct
import sys
import time

# linux/rds.h
SOL_RDS = 276
FREE_MR, TRANSPORT, INFO_IB_CONNECTIONS = 3, 8, 10008
CMSG_RDMA_ARGS, CMSG_RDMA_DEST, CMSG_RDMA_MAP, CMSG_RDMA_STATUS = 1, 2, 3, 4
READWRITE, FENCE, INVALIDATE, NOTIFY_ME = 1, 2, 4, 0x20
TRANS_IB = 0
LONGEST = 1 << 20
IB_CONNECTION = struct.Struct('<4s4s16s16s5IBBxxI')

PORT = 4000
SLOWNESS = int(os.environ.get('SKUA_SLOWNESS', '1'))
# Seconds until a message is missed. RDS cannot connect anew while memory is registered on the connection that was lost,
# so that whoever waits for RDMA has to free it.
PATIENCE, RDMA_PATIENCE = 60 * SLOWNESS, 5 * SLOWNESS
BUFFER = 8 << 20
HEAD = struct.Struct('<cI')     # what a message is, and its number
WINDOW = 8
SIZES = 0, 1, 100, 4096, 5000, 65536, 300000, LONGEST - HEAD.size
INVERTED = bytes(255 - byte for byte in range(256))


class Memory:
    """Memory that RDMA reads and writes."""

    def __init__(self):
        self.bytes = mmap.mmap(-1, LONGEST + mmap.PAGESIZE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))

    def vector(self, offset, size):
        return struct.pack('<QQ', self.address + offset, size)


class Socket:
    def __init__(self, address, port):
        self.socket = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
        # Without it RDS would be content with TCP.
        self.socket.setsockopt(SOL_RDS, TRANSPORT, TRANS_IB)
        self.patience(PATIENCE)
        for option in (32, 33):     # SO_SNDBUFFORCE, SO_RCVBUFFORCE
            self.socket.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        self.socket.bind((address, port))
        self.waiting = collections.deque()      # messages that came while a status was waited for
        self.tokens = 0

    def patience(self, seconds):
        """0: none is too long"""
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self.socket.setsockopt(socket.SOL_SOCKET, option, struct.pack('<qq', seconds, 0))

    def send(self, to, kind, number, body=b'', control=()):
        message = HEAD.pack(kind, number) + body
        self.socket.sendmsg([message], [(SOL_RDS, *one) for one in control], 0, to)

    def _next(self):
        """(message or None, {type of control message: data}, its sender)"""
        data, control, _, sender = self.socket.recvmsg(LONGEST, 1024)
        told = {kind: text for level, kind, text in control if level == SOL_RDS}
        return (None if CMSG_RDMA_STATUS in told else data), told, sender

    def receive(self):
        """(kind, number, body, cookie or None, sender) of the next message"""
        data, told, sender = self.waiting.popleft() if self.waiting else self._next()
        if data is None:
            raise ValueError('the status of an RDMA operation that nobody waits for')
        cookie = told.get(CMSG_RDMA_DEST)
        return (*HEAD.unpack_from(data), data[HEAD.size:], cookie and struct.unpack('<Q', cookie[:8])[0], sender)

    def rdma(self, to, cookie, memory, size, write, kind, number):
        """Read or write memory that a peer named, and send a message behind. Returns the status. RDS tells it as soon as
        the peer has acknowledged the message; without a fence that may be before all bytes of a READ are here."""
        vector = ctypes.create_string_buffer(memory.vector(0, size), 16)
        self.tokens += 1
        flags = NOTIFY_ME | FENCE | (READWRITE if write else 0)
        self.send(to, kind, number, control=[(CMSG_RDMA_ARGS, struct.pack(
            '<7Q', cookie, 0, size, ctypes.addressof(vector), 1, flags, self.tokens))])
        while True:
            data, told, sender = self._next()
            if data is not None:
                self.waiting.append((data, told, sender))
                continue
            token, status = struct.unpack('<Qi', told[CMSG_RDMA_STATUS][:12])
            if token == self.tokens:
                return status


def serve(address):
    ours, memory = Socket(address, PORT), Memory()
    ours.patience(0)
    try:
        while True:
            kind, number, body, cookie, sender = ours.receive()
            if kind == b'e':
                ours.send(sender, kind, number)
                time.sleep(1)       # a socket that is closed forgets what it has not sent
                return
            if kind == b'm':
                ours.send(sender, kind, number, body.translate(INVERTED))
                continue
            size, = struct.unpack('<I', body)
            # The client does not wait for the first message.
            status = ours.rdma(sender, cookie, memory, size, False, b'-', number)
            memory.bytes[:size] = memory.bytes[:size].translate(INVERTED)
            status = status or ours.rdma(sender, cookie, memory, size, True, b'r', number)
            if status:
                ours.send(sender, b'f', number, struct.pack('<i', status))
    finally:
        ours.socket.close()


def client(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect((address, PORT))
        return Socket(way.getsockname()[0], 0), (address, PORT)


def reach(address):
    """A message to a port without a socket is dropped, and its sender is not told, so that a server is asked until it
    answers. It answers in order."""
    ours, server = client(address)
    ours.patience(1)
    for number in range(PATIENCE):
        ours.send(server, b'm', number)
        try:
            while ours.receive()[1] != number:
                pass
            return
        except TimeoutError:
            pass
    sys.exit('nobody answers')


def messages(address, seconds):
    ours, server = client(address)
    end, number, sent, total = time.monotonic() + float(seconds), 0, collections.deque(), 0
    while True:
        while len(sent) < WINDOW and time.monotonic() < end:
            body = random.randbytes(random.choice(SIZES))
            ours.send(server, b'm', number, body)
            sent.append((number, body))
            number += 1
        if not sent:
            break
        expected, body = sent.popleft()
        kind, answered, answer, _, _ = ours.receive()
        if (kind, answered) != (b'm', expected):
            sys.exit('message %d came in place of %d' % (answered, expected))
        if answer != body.translate(INVERTED):
            sys.exit('message %d of %d bytes came back with wrong bytes' % (expected, len(body)))
        total += len(body)
    print('%d messages, %d MB each way' % (number, total / 1e6))


def remote(address, seconds):
    ours, server = client(address)
    ours.patience(RDMA_PATIENCE)
    memory, cookie = Memory(), ctypes.c_uint64()
    end, number, failed, total = time.monotonic() + float(seconds), 0, 0, 0
    while time.monotonic() < end:
        number += 1
        offset = random.randrange(mmap.PAGESIZE)
        size = random.choice([1, 100, 4096, 65537, LONGEST])
        before = random.randbytes(len(memory.bytes))
        memory.bytes[:] = before
        mapped = memory.vector(offset, size) + struct.pack('<QQ', ctypes.addressof(cookie), READWRITE)
        if not _mapped(ours, server, number, size, mapped):
            continue
        kind = _answer(ours, number)
        ours.socket.setsockopt(SOL_RDS, FREE_MR, struct.pack('<QQ', cookie.value, INVALIDATE))
        if kind != b'r':            # the connection was lost meanwhile
            failed += 1
            continue
        after = before[offset:offset + size].translate(INVERTED)
        if memory.bytes[:] != before[:offset] + after + before[offset + size:]:
            sys.exit('%d bytes of memory are not what the server wrote' % size)
        total += size
    if not total:
        sys.exit('none of %d RDMA operations succeeded' % number)
    print('%d pairs of READ and WRITE, %d MB each way; %d failed' % (number, total / 1e6, failed))


def _answer(ours, number):
    """What kind of message the server answers with once its RDMA is done, or None."""
    kind, answered = b'-', 0
    try:
        while kind == b'-' or answered != number:
            kind, answered, _, _, _ = ours.receive()
        return kind
    except TimeoutError:
        return None


def _mapped(ours, server, number, size, mapped):
    """Send a message that names memory. False if RDS is not connected, and cannot register memory."""
    try:
        ours.send(server, b'r', number, struct.pack('<I', size), [(CMSG_RDMA_MAP, mapped)])
        return True
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EBUSY):
            raise
        time.sleep(0.1)
        return False


def shows(address):
    with socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET) as ours:
        told = ours.getsockopt(SOL_RDS, INFO_IB_CONNECTIONS, IB_CONNECTION.size * 8)
    for _, peer, _, gid, *_ in IB_CONNECTION.iter_unpack(told):
        if socket.inet_ntoa(peer) == address and any(gid):
            return
    sys.exit('RDS has no RDMA connection with ' + address)


def end(address):
    ours, server = client(address)
    ours.send(server, b'e', 0)
    ours.receive()


if __name__ == '__main__':
    COMMANDS = {one.__name__: one for one in (serve, reach, messages, remote, shows, end)}
    if len(sys.argv) < 3 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
