# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A line between a NIC and rdma_rxe that mends the ICRC of FLUSHes, by which alone the two differ: rdma_rxe's table has
no place of the payload for FLUSH (rxe_opcode.c), so it takes the headers behind UDP into the ICRC twice (rxe_icrc.c). A
FLUSH whose ICRC is not that of its sender stays as it is, and is dropped by the other end. IPv4 only."""

import socket
import struct
import threading
import zlib

ETHER, IP, UDP = 14, 20, 8
BTH = ETHER + IP + UDP
ROCE, FLUSH = 4791, 0x1c
MOST = 65536


def is_flush(frame):
    return (len(frame) > BTH and frame[12:14] == b'\x08\x00' and frame[ETHER] == 0x45 and frame[ETHER + 9] == 17 and
            frame[ETHER + IP + 2:ETHER + IP + 4] == struct.pack('>H', ROCE) and frame[BTH] == FLUSH)


def icrc(frame, by_rxe):
    """Of a FLUSH (IBTA, annex A17: what routers change counts as ones)."""
    seen = bytearray(frame[ETHER:-4])
    seen[1] = seen[8] = seen[IP + UDP + 4] = 0xff
    seen[10:12] = seen[IP + 6:IP + 8] = b'\xff\xff'
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + seen + (frame[BTH:-4] if by_rxe else b'')))


class Mender:
    """Passes datagrams on between near, where a NIC is, and far, where rdma_rxe is. Each end is a pair of paths: ours,
    which is made, and theirs."""

    def __init__(self, near, far):
        self.mended = {'skua': 0, 'rxe': 0}     # FLUSHes of each
        self.near, self.far = self._socket(near[0]), self._socket(far[0])
        for words in (self.near, self.far, far[1], 'skua'), (self.far, self.near, near[1], 'rxe'):
            threading.Thread(target=self._pass_on, args=words, daemon=True).start()

    @staticmethod
    def _socket(path):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        made.bind(path)
        return made

    def _pass_on(self, source, way, path, sender):
        while True:
            try:
                way.sendto(self._mend(source.recv(MOST), sender), path)
            except (ConnectionError, FileNotFoundError):
                pass        # nobody is there yet, or any more

    def _mend(self, frame, sender):
        by_rxe = sender == 'rxe'
        if not is_flush(frame) or frame[-4:] != icrc(frame, by_rxe):
            return frame
        self.mended[sender] += 1
        return frame[:-4] + icrc(frame, not by_rxe)
