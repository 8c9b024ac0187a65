#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Writes test_packet_vectors.h: RoCEv2 packets as Scapy's contrib/roce builds them, one of
# each kind, for test_packet.c to compare with. Needs python3-scapy:
#
#   ./test_packet_vectors.py > test_packet_vectors.h
#
# Scapy has no RETH, ImmDt, IETH, FETH and XRCETH, and no ICRC over IPv6; they are added here.

import struct
from zlib import crc32

from scapy.contrib.roce import AETH, BTH
from scapy.fields import IntField, XIntField, XLongField
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw, raw


class RETH(Packet):
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), IntField("length", 0)]


class Word(Packet):
    """ImmDt, IETH, FETH and XRCETH."""
    fields_desc = [XIntField("value", 0)]


def icrc6(frame):
    p = bytearray(raw(frame[IPv6]))
    p[0] |= 0x0f
    p[1:4] = b"\xff\xff\xff"
    p[7] = 0xff
    p[46:48] = b"\xff\xff"
    p[52] = 0xff
    return struct.pack("<I", crc32(b"\xff" * 8 + p[:-4]))


def message(start, length):
    return bytes((7 * k + 3) & 0xff for k in range(start, start + length))


def build(opcode, psn, headers=None, start=0, length=0, se=0, ackreq=0, v6=False):
    pad = -length % 4
    bth = BTH(opcode=opcode, solicited=se, migreq=1, padcount=pad, dqpn=0x123456,
              ackreq=ackreq, psn=psn)
    body = Raw(message(start, length) + bytes(pad)) if length else None
    inner = bth
    for part in (headers or []) + ([body] if body else []):
        inner = inner / part
    eth = Ether(src="52:54:00:00:00:01", dst="52:54:00:00:00:02")
    udp = UDP(sport=0xc123, dport=4791, chksum=0)
    if not v6:
        return raw(eth / IP(src="192.0.2.1", dst="192.0.2.2", tos=0x22, ttl=64, id=0,
                            flags="DF") / udp / inner)
    bth.icrc = 0
    frame = (eth / Dot1Q(vlan=100, prio=5) /
             IPv6(src="2001:db8::1", dst="2001:db8::2", tc=0x0a, fl=0xabcde, hlim=1) /
             udp / inner)
    return raw(frame)[:-4] + icrc6(frame)


def reth(length):
    return RETH(va=0x1122334455667788, rkey=0xcafe0042, length=length)


class DETH(Packet):
    fields_desc = [XIntField("qkey", 0), XIntField("src_qpn", 0)]


IMM = Word(value=0x01020304)
INV = Word(value=0xbeef0017)
FETH = Word(value=0x11)     # globally visible, the whole MR
SRQ = Word(value=0x00abcdef)
PSN = 0xfffffe      # so that a message of three packets goes round

VECTORS = [
    ("send_first", build(0x00, PSN, length=256)),
    ("send_middle", build(0x01, PSN + 1, start=256, length=256)),
    ("send_last", build(0x02, 0, start=512, length=5, se=1, ackreq=1)),
    ("send_last_imm", build(0x03, 0, [IMM], start=512, length=5, se=1, ackreq=1)),
    ("send_only", build(0x04, PSN, length=6, ackreq=1)),
    ("send_only_empty", build(0x04, PSN)),
    ("send_only_imm", build(0x05, PSN, [IMM], length=7, se=1)),
    ("send_last_inv", build(0x16, 0, [INV], start=512, length=5, se=1, ackreq=1)),
    ("send_only_inv", build(0x17, PSN, [INV], length=8)),
    ("write_first", build(0x06, PSN, [reth(517)], length=256)),
    ("write_middle", build(0x07, PSN + 1, start=256, length=256)),
    ("write_last", build(0x08, 0, start=512, length=5, ackreq=1)),
    ("write_last_imm", build(0x09, 0, [IMM], start=512, length=5, se=1, ackreq=1)),
    ("write_only", build(0x0a, PSN, [reth(1)], length=1, ackreq=1)),
    ("write_only_imm", build(0x0b, PSN, [reth(0), IMM], ackreq=1)),
    ("read_request", build(0x0c, PSN, [reth(517)], ackreq=1)),
    ("read_response_first", build(0x0d, PSN, [AETH(syndrome=0x1f, msn=0x10203)], length=256)),
    ("read_response_middle", build(0x0e, PSN + 1, start=256, length=256)),
    ("read_response_last", build(0x0f, 0, [AETH(syndrome=0x1f, msn=0x10203)], start=512,
                                 length=5)),
    ("read_response_only", build(0x10, PSN, [AETH(syndrome=0x1f, msn=0x10203)], length=9)),
    ("ack", build(0x11, PSN, [AETH(syndrome=0x1f, msn=0xffffff)])),
    ("rnr_nak", build(0x11, PSN, [AETH(syndrome=0x2c, msn=1)])),
    ("sequence_nak", build(0x11, PSN, [AETH(syndrome=0x60, msn=1)])),
    ("v6_write_only_imm", build(0x0b, PSN, [reth(3), IMM], length=3, se=1, ackreq=1, v6=True)),
    ("uc_send_first", build(0x20, PSN, length=256)),
    ("uc_send_middle", build(0x21, PSN + 1, start=256, length=256)),
    ("uc_send_last", build(0x22, 0, start=512, length=5)),
    ("uc_send_last_imm", build(0x23, 0, [IMM], start=512, length=5, se=1)),
    ("uc_send_only", build(0x24, PSN, length=6)),
    ("uc_send_only_imm", build(0x25, PSN, [IMM], length=7, se=1)),
    ("uc_write_first", build(0x26, PSN, [reth(517)], length=256)),
    ("uc_write_middle", build(0x27, PSN + 1, start=256, length=256)),
    ("uc_write_last", build(0x28, 0, start=512, length=5)),
    ("uc_write_last_imm", build(0x29, 0, [IMM], start=512, length=5, se=1)),
    ("uc_write_only", build(0x2a, PSN, [reth(1)], length=1)),
    ("uc_write_only_imm", build(0x2b, PSN, [reth(0), IMM])),
    ("ud_send", build(0x64, PSN, [DETH(qkey=0x80010000, src_qpn=0x10203)], length=256)),
    ("ud_send_empty", build(0x64, PSN, [DETH(qkey=0x80010000, src_qpn=0x10203)])),
    ("ud_send_imm", build(0x65, PSN, [DETH(qkey=0x11, src_qpn=1), IMM], length=5, se=1)),
    ("v6_ud_send_imm", build(0x65, PSN, [DETH(qkey=0x11, src_qpn=1), IMM], length=5, se=1,
                             v6=True)),
    ("flush", build(0x1c, PSN, [FETH, reth(517)], ackreq=1)),
    ("atomic_write", build(0x1d, PSN, [reth(8)], length=8, ackreq=1)),
    ("xrc_send_first", build(0xa0, PSN, [SRQ], length=256)),
    ("xrc_send_middle", build(0xa1, PSN + 1, [SRQ], start=256, length=256)),
    ("xrc_send_last", build(0xa2, 0, [SRQ], start=512, length=5)),
    ("xrc_send_last_imm", build(0xa3, 0, [SRQ, IMM], start=512, length=5, se=1)),
    ("xrc_send_only", build(0xa4, PSN, [SRQ], length=6)),
    ("xrc_send_only_imm", build(0xa5, PSN, [SRQ, IMM], length=7, se=1)),
    ("xrc_send_last_inv", build(0xb6, 0, [SRQ, INV], start=512, length=5, se=1, ackreq=1)),
    ("xrc_send_only_inv", build(0xb7, PSN, [SRQ, INV], length=8)),
    ("xrc_write_first", build(0xa6, PSN, [SRQ, reth(517)], length=256)),
    ("xrc_write_middle", build(0xa7, PSN + 1, [SRQ], start=256, length=256)),
    ("xrc_write_last", build(0xa8, 0, [SRQ], start=512, length=5)),
    ("xrc_write_last_imm", build(0xa9, 0, [SRQ, IMM], start=512, length=5, se=1)),
    ("xrc_write_only", build(0xaa, PSN, [SRQ, reth(1)], length=1)),
    ("xrc_write_only_imm", build(0xab, PSN, [SRQ, reth(0), IMM])),
    ("xrc_read_request", build(0xac, PSN, [SRQ, reth(517)], ackreq=1)),
    ("xrc_read_response_first", build(0xad, PSN, [AETH(syndrome=0x1f, msn=0x10203)], length=256)),
    ("xrc_read_response_middle", build(0xae, PSN + 1, start=256, length=256)),
    ("xrc_read_response_last", build(0xaf, 0, [AETH(syndrome=0x1f, msn=0x10203)], start=512,
                                     length=5)),
    ("xrc_read_response_only", build(0xb0, PSN, [AETH(syndrome=0x1f, msn=0x10203)], length=9)),
    ("xrc_ack", build(0xb1, PSN, [AETH(syndrome=0x1f, msn=0xffffff)])),
    ("v6_xrc_write_only_imm", build(0xab, PSN, [SRQ, reth(3), IMM], length=3, se=1, ackreq=1,
                                    v6=True)),
    ("v6_ack", build(0x11, PSN, [AETH(syndrome=0x1f, msn=2)], v6=True)),
]

print("/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */")
print("/* Made by test_packet_vectors.py; not to be edited. */")
print("static const struct {\n\tconst char *name, *hex;\n} vectors[] = {")
for name, packet in VECTORS:
    text = packet.hex()
    lines = [text[k:k + 80] for k in range(0, len(text), 80)]
    print('\t{ "%s",\n%s },' % (name, "\n".join('\t  "%s"' % line for line in lines)))
print("};")
