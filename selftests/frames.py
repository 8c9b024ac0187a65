#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Traffic for test_netdev.sh that no tool of the guest can make.

usage: frames.py echo ADDRESS             answer UDP datagrams on port 5002, until killed
       frames.py udp ADDRESS COUNT MAX [LOST]
                                          send COUNT datagrams of up to MAX bytes, and compare their echo; at most
                                          LOST may have to be sent again
       frames.py flows ADDRESS COUNT      do so from COUNT ports, with 20 datagrams of 100 bytes from each
       frames.py csum NETDEV MAC SOURCE DESTINATION good|bad COUNT
                                          send UDP frames to port 9 with a right or a wrong checksum
       frames.py garbage NETDEV MAC COUNT send random frames, most of them like IP packets
       frames.py digest                   answer messages over TCP on port 5003 by their SHA-256, until killed
       frames.py stream ADDRESS,... BYTES send messages of many sizes, BYTES to each, and compare the answers
       frames.py streams ADDRESS COUNT SECONDS
                                          say that COUNT connections are made, and do so over all at the same time,
                                          for so long
       frames.py longest NETDEV SECONDS   print the bytes of the longest frame that is sent meanwhile
       frames.py owed ADDRESS SECONDS     send datagrams until the socket takes no more, say so, and wait that long until
                                          all of its frames are given back
"""
import fcntl
import hashlib
import os
import random
import select
import socket
import socketserver
import struct
import sys
import termios
import time

PORT = 5002
TCP_PORT = 5003
PATIENCE = int(os.environ.get('SKUA_SLOWNESS', 1))      # seconds: a kernel that finds faults is slow


def echo(address):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    server.bind((address, PORT))
    while True:
        data, peer = server.recvfrom(65536)
        server.sendto(data, peer)


def ask(client, data):
    """Did it come back as it was? Returns how many times it had to be sent again; three times in a row is a fault."""
    for again in range(3):
        client.send(data)
        while select.select([client], [], [], PATIENCE)[0]:
            got = client.recv(65536)
            if got[:8] != data[:8]:
                continue                    # an answer that came late
            if got != data:
                sys.exit('%d bytes came back changed' % len(data))
            return again
    sys.exit('no answer to %d bytes' % len(data))


def connected(address):
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect((address, PORT))
    return client


def few(again, lost):
    """On a busy machine an answer may come late; a NIC whose rings change loses some."""
    if again > lost:
        sys.exit('%d datagrams had to be sent again, more than %d' % (again, lost))


def udp(address, count, most, lost=2):
    client, again = connected(address), 0
    for number in range(int(count)):
        size = random.choice((random.randint(8, int(most)), int(most), random.randint(8, 100)))
        again += ask(client, struct.pack('>Q', number) + os.urandom(size - 8))
    few(again, int(lost))


def flows(address, count):
    clients = [connected(address) for _ in range(int(count))]
    few(sum(ask(client, struct.pack('>Q', number) + os.urandom(92)) for number in range(20) for client in clients), 5)


class Digest(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.rfile.read(4):
            self.wfile.write(hashlib.sha256(self.rfile.read(struct.unpack('>I', head)[0])).digest())


class DigestServer(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6        # and IPv4
    allow_reuse_address = True
    request_queue_size = 64
    daemon_threads = True


def digest():
    DigestServer(('::', TCP_PORT), Digest).serve_forever()


def talker(address):
    # After an outage TCP may wait for as long again as it took (RFC 6298, 5.5), and a slow guest needs half a minute to
    # load its drivers.
    # Any port, which is a random one. Of its own accord the kernel gives out every second one in turn, and with one key of
    # RSS in 30 all of these have the same channel.
    client = socket.create_connection((address, TCP_PORT), 150 * PATIENCE, ('', 0))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def talk(client, size):
    """Does a message of so many bytes come as it was?"""
    data = os.urandom(size)
    client.sendall(struct.pack('>I', size) + data)
    answer = b''
    while len(answer) < 32:
        more = client.recv(32 - len(answer))
        if not more:
            sys.exit('the connection ended')
        answer += more
    if answer != hashlib.sha256(data).digest():
        sys.exit('%d bytes came changed' % size)


def stream(addresses, total):
    """Sizes around those of segments, of pages and of the longest packet, and others."""
    for address in addresses.split(','):
        sizes = [1, 100, 1447, 1448, 1449, 4095, 4096, 4097, 8948, 10 * 1448, 65159, 65160, 65535, 65536, 200000]
        left = int(total)
        with talker(address) as client:
            while left > 0:
                size = sizes.pop(0) if sizes else random.randint(1, 300000)
                talk(client, size)
                left -= size


def streams(address, count, seconds):
    # The others begin sooner without it, in a guest whose processor is emulated.
    from concurrent.futures import ThreadPoolExecutor
    clients = [talker(address) for _ in range(int(count))]
    print(count, 'connections', flush=True)
    end = time.monotonic() + float(seconds)

    def one(client):
        try:
            while time.monotonic() < end:
                talk(client, random.randint(1, 100000))
        except OSError as error:
            sys.exit('a connection broke: %s' % error)

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(one, clients))


def longest(netdev, seconds):
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))     # ETH_P_ALL
    tap.bind((netdev, 3))
    most, end = 0, time.monotonic() + float(seconds)
    while (left := end - time.monotonic()) > 0:
        if select.select([tap], [], [], left)[0]:
            length, _, _, peer = tap.recvmsg_into([bytearray(1)], 0, socket.MSG_TRUNC)
            if peer[2] == socket.PACKET_OUTGOING:
                most = max(most, length)
    print(most)


def owed(address, seconds):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setblocking(False)
    try:
        while True:
            sender.sendto(bytes(1400), (address, 9))    # not connected: nobody is there, and says so
    except BlockingIOError:
        print('full', flush=True)
    end = time.monotonic() + float(seconds) * PATIENCE
    while left := struct.unpack('i', fcntl.ioctl(sender, termios.TIOCOUTQ, bytes(4)))[0]:
        if time.monotonic() > end:
            sys.exit('%d bytes are not given back' % left)
        time.sleep(0.1)


def checksum(data):
    total = sum(struct.unpack('>%dH' % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ether(netdev, mac, kind):
    """A socket for whole frames, and the header of frames to a MAC."""
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind((netdev, 0))
    return sender, bytes.fromhex(mac.replace(':', '')) + sender.getsockname()[4] + struct.pack('>H', kind)


def csum(netdev, mac, source, destination, how, count):
    """A word at the end gives each frame the checksum that is chosen for it. UDP takes a checksum of 0 for none, so a
    right one of 0 is sent as ffff, and no wrong one may be 0. The first frame is such a case."""
    sender, header = ether(netdev, mac, 0x0800)
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    bad = how == 'bad'
    for number in range(int(count)):
        data = os.urandom(2 * number + 98)
        length = len(data) + 10
        head = struct.pack('>HHHH', 1000 + number, 9, length, 0)
        value = random.randrange(0xffff) if number else 0x0100 if bad else 0
        last = (checksum(addresses + struct.pack('>HH', 17, length) + head + data) - value) % 0xffff
        if bad:
            value = value ^ 0x0100 or 0x0200
        ip = struct.pack('>BBHHHBBH', 0x45, 0, 20 + length, number, 0, 64, 17, 0) + addresses
        ip = ip[:10] + struct.pack('>H', checksum(ip)) + ip[12:]
        sender.send(header + ip + head[:6] + struct.pack('>H', value or 0xffff) + data + struct.pack('>H', last))


def garbage(netdev, mac, count):
    random.seed(7)
    sender, header = ether(netdev, mac, 0)
    heads = (b'\x08\x00\x45', b'\x08\x00\x4f', b'\x86\xdd\x60', b'\x81\x00\x00\x05\x08\x00\x45',
             b'\x81\x00\x00\x05\x86\xdd\x60', b'\x08\x06\x00', b'\x88\xb5\x00')
    for _ in range(int(count)):
        to = random.choice((header[:6], header[:6], b'\xff' * 6, b'\x01\x00\x5e' + os.urandom(3)))
        frame = to + header[6:12] + random.choice(heads)
        frame += random.randbytes(random.choice((0, 1, 10, 25, 40, 60, random.randint(0, 1490))))
        # Some IP headers are whole, with lengths and protocols that mean something.
        if random.random() < 0.5 and len(frame) > 40:
            frame = frame[:16] + struct.pack('>H', len(frame) - 14) + frame[18:23] + \
                random.choice((b'\x06', b'\x11')) + frame[24:]
        # Neither commands to the stack nor its business: only ports and groups nobody listens to.
        sender.send(frame)


if __name__ == '__main__':
    globals()[sys.argv[1]](*sys.argv[2:])
