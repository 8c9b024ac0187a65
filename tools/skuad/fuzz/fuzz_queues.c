// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Work requests, doorbell records and doorbells: all that a program with a mapped QP can do, and
 * some of what its driver can.
 */
#include "fuzz/fuzz.h"
#include "fuzz/traffic.h"

static void fuzz_run(const struct step *steps, unsigned int n)
{
	struct traffic t;

	traffic_create(&t, &steps[0]);
	for (unsigned int i = 1; i < n; i++) {
		race_step();
		traffic_play(&t, &steps[i]);
	}
	traffic_destroy(&t);
}

#define ALL	SGE(K_ALL, 64, 5000)
#define SIGNALED	SKUA_WQE_SIGNALED

/* Each opcode and a receive for it, in a world that @config_ describes. */
#define OPCODES(name, ...) \
	FUZZ_SEED(name, __VA_ARGS__, RQE(1, ALL), \
		  WQE(SKUA_WQE_SEND, SIGNALED, 1, ALL), WQE(SKUA_WQE_SEND_IMM, SIGNALED, 2, ALL), \
		  WQE(SKUA_WQE_SEND_INV, 3, 1, ALL, .n[2] = K_FAST), \
		  WQE(SKUA_WQE_WRITE, SIGNALED, 1, ALL, .n[1] = 100), \
		  WQE(SKUA_WQE_WRITE_IMM, SIGNALED, 1, SGE(K_EXTRA, 1, 9000), .n[2] = K_EXTRA), \
		  WQE(SKUA_WQE_READ, SIGNALED, 1, ALL, .n[2] = K_READ), \
		  WQE(SKUA_WQE_CMP_SWAP, 7, 1, SGE(K_ALL, 0, 8), .n[2] = K_EXTRA), \
		  WQE(SKUA_WQE_FETCH_ADD, 1, 1, SGE(K_ALL, 8, 8), .n[2] = K_EXTRA, .v[0] = 1), \
		  WQE(SKUA_WQE_MASKED_CMP_SWAP, 1, 1, SGE(K_ALL, 0, 8), .n[2] = K_EXTRA, .v[1] = 9), \
		  WQE(SKUA_WQE_MASKED_FETCH_ADD, 1, 1, SGE(K_ALL, 8, 8), .n[2] = K_EXTRA, .v[0] = 1), \
		  WQE(SKUA_WQE_FLUSH, 1, 0, 0, .n[2] = K_EXTRA, .v = { SKUA_FLUSH_GLOBAL, 100 }), \
		  WQE(SKUA_WQE_ATOMIC_WRITE, 1, 1, SGE(K_ALL, 8, 8), .n[2] = K_EXTRA), \
		  WQE(SKUA_WQE_TSO, 1, 1, ALL, .n[1] = 1000), \
		  WQE(SKUA_WQE_LOCAL_INV, 1, 0, 0, .n[2] = K_FAST), WQE(SKUA_WQE_NOP, 1, 0, 0), \
		  WQE(SKUA_WQE_SEND, SKUA_WQE_INLINE, 200 << 8, ALL), \
		  { .verb = WORK }, { .verb = POLL, .n[0] = 299 }, { .verb = POLL, .a = 1, .n[0] = 299 })

static void fuzz_seeds(void)
{
	OPCODES("opcodes", CONFIG());
	OPCODES("no-features", CONFIG(.a = 7));
	OPCODES("mtus", CONFIG(.b = 2, .c = 3));
	OPCODES("privileged", CONFIG(.a = 8));
	OPCODES("self", CONFIG(.a = 16));
	OPCODES("small", CONFIG(.n[0] = 0x534));
	OPCODES("ethernet", CONFIG(.a = 0x20));
	OPCODES("uc", CONFIG(.a = 0x40));
	OPCODES("uc-privileged", CONFIG(.a = 0x48));
	OPCODES("ud", CONFIG(.a = 0x80));
	OPCODES("gsi", CONFIG(.a = 0xc0));
	OPCODES("srq", CONFIG(.n[0] = SRQ));
	OPCODES("srq of uc", CONFIG(.a = 0x40, .n[0] = SRQ));
	OPCODES("srq of ud", CONFIG(.a = 0x80, .n[0] = SRQ));
	OPCODES("xrc", CONFIG(.n[0] = XRC));
	FUZZ_SEED("limits", CONFIG(.n[0] = SRQ), { .verb = SHARED, .a = 1, .b = 1, .n[0] = 3 }, RQE(1, ALL),
		  WQE(SKUA_WQE_SEND, SIGNALED, 1, ALL), WQE(SKUA_WQE_SEND, SIGNALED, 1, ALL), { .verb = STEPS, .n[0] = 1 },
		  { .verb = MODIFY, .a = 1 }, { .verb = WORK }, { .verb = MODIFY, .c = 2 }, RQE(1, ALL),
		  WQE(SKUA_WQE_SEND, SIGNALED, 1, ALL), { .verb = WORK }, { .verb = POLL, .a = 1, .n[0] = 99 });
	/* To the peer's pages and from own ones, which come, go before the end, and are refused. */
	FUZZ_SEED("on demand", CONFIG(), WQE(SKUA_WQE_WRITE, SIGNALED, 1, ALL, .n[2] = K_DEMAND), { .verb = WORK },
		  BRING(1), RESUME(1), { .verb = PASS, .n[0] = 1000 }, RQE(1, SGE(K_DEMAND, 0, 9000)), DROP(1),
		  WQE(SKUA_WQE_SEND, SIGNALED, 1, SGE(K_DEMAND, 0, 5000)), { .verb = WORK }, BRING(0), RESUME(0), { .verb = WORK },
		  BRING(1), RESUME(1), { .verb = PASS, .n[0] = 1000 }, DROP(0),
		  WQE(SKUA_WQE_READ, 1, 1, SGE(K_DEMAND, 0, 12000), .n[2] = K_DEMAND), { .verb = WORK }, BRING(0), RESUME(0),
		  { .verb = STEPS, .n[0] = 2 }, DROP(0), { .verb = WORK }, { .verb = FAULT, .b = SKUA_PAGE_FAULT_FAIL },
		  { .verb = WORK }, { .verb = POLL, .n[0] = 99 });
	FUZZ_SEED("on demand, uc", CONFIG(.a = 0x40), RQE(1, SGE(K_DEMAND, 0, 9000)), WQE(SKUA_WQE_SEND, SIGNALED, 1, ALL),
		  { .verb = WORK }, BRING(1), RESUME(1), WQE(SKUA_WQE_SEND, SIGNALED, 1, SGE(K_DEMAND, 0, 5000)), { .verb = WORK },
		  BRING(0), RESUME(0), { .verb = WORK }, { .verb = REGION, .b = K_DEMAND }, { .verb = WORK });
	FUZZ_SEED("groups", CONFIG(.a = 0x80), RQE(1, ALL), RQE(0, ALL),
		  WQE(SKUA_WQE_SEND, 1, 1, SGE(K_ALL, 0, 100), .n[2] = 0x100),
		  WQE(SKUA_WQE_SEND, 1, 1, SGE(K_ALL, 0, 100), .n[1] = SKUA_QKEY_OWN, .n[2] = 0x200),
		  WQE(SKUA_WQE_SEND, 1, 1, SGE(K_ALL, 0, 100), .n[2] = 0x01100400), { .verb = WORK },
		  { .verb = MODIFY, .b = SKUA_QPS_RTS, .c = 4, .n[0] = 1 },
		  WQE(SKUA_WQE_SEND_IMM, 1, 1, SGE(K_ALL, 0, 100)), { .verb = WORK });
	FUZZ_SEED("nothing-inline", CONFIG(.a = 0x80), RQE(1, SGE(K_ALL, 0, 40)),
		  WQE(SKUA_WQE_SEND, SKUA_WQE_INLINE, 0, ALL), { .verb = WORK });
	/* TCP and, with a VLAN tag, UDP; their checksums are to be filled in. */
	FUZZ_SEED("frames", CONFIG(.a = 0x20), RQE(1, ALL),
		  { .verb = PATCH, .b = 2, .bytes = {
			255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 0,
			0x45, 0, 0, 86, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0 } },
		  { .verb = PATCH, .b = 2, .n[0] = 32, .bytes = {
			2, 2, 0x12, 0x34, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2 } },
		  { .verb = POST, .a = 4, .b = SKUA_WQE_SEND, .c = 0x11, .n[0] = 1,
		    .v[0] = 34 | 16 << 16, .bytes = { SGE(K_ALL, 0, 100) } },
		  { .verb = PATCH, .b = 2, .n[0] = 200, .bytes = {
			2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 5, 8, 0,
			0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0 } },
		  { .verb = PATCH, .b = 2, .n[0] = 232, .bytes = {
			2, 1, 192, 0, 2, 2, 0x12, 0x34, 0x12, 0xb7, 0, 20 } },
		  { .verb = POST, .a = 4, .b = SKUA_WQE_SEND, .c = 0x11, .n[0] = 1,
		    .v[0] = 38 | 6 << 16, .bytes = { SGE(K_ALL, 200, 80) } },
		  { .verb = WORK }, { .verb = POLL, .a = 1, .n[0] = 9 });
	FUZZ_SEED("raw frames", CONFIG(.a = 0x60, .n[1] = 0x20), RQE(1, ALL),
		  { .verb = PATCH, .b = 2, .bytes = {
			255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 0,
			0x45, 0, 0, 86, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0 } },
		  { .verb = PATCH, .b = 2, .n[0] = 32, .bytes = {
			2, 2, 0x12, 0x34, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2 } },
		  { .verb = POST, .a = 4, .b = SKUA_WQE_SEND, .c = 0x11, .n[0] = 1,
		    .v[0] = 34 | 16 << 16, .bytes = { SGE(K_ALL, 0, 100) } },
		  { .verb = PATCH, .b = 2, .n[0] = 200, .bytes = {
			2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 5, 8, 0,
			0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0 } },
		  { .verb = PATCH, .b = 2, .n[0] = 232, .bytes = {
			2, 1, 192, 0, 2, 2, 0x12, 0x34, 0x12, 0xb7, 0, 20 } },
		  { .verb = POST, .a = 4, .b = SKUA_WQE_SEND, .c = 0x11, .n[0] = 1,
		    .v[0] = 38 | 6 << 16, .bytes = { SGE(K_ALL, 200, 80) } },
		  { .verb = WORK }, { .verb = POLL, .a = 1, .n[0] = 9 });
	/* TCP that is cut: over IPv4, and over IPv6 behind a tag, a byte each; then with headers that are no good. */
	FUZZ_SEED("segments", CONFIG(.a = 0x20), RQE(1, ALL), WQE(SKUA_WQE_TSO, 1, 2, ALL, .n[1] = 1448), { .verb = WORK },
		  WQE(SKUA_WQE_TSO, 1, 1, SGE(K_ALL, 3, 300), .n[1] = 1, .v[0] = 3), { .verb = WORK },
		  WQE(SKUA_WQE_SEND, SKUA_WQE_IP_CSUM, 1, SGE(K_ALL, 0, 100)),
		  WQE(SKUA_WQE_TSO, SKUA_WQE_IP_CSUM, 1, SGE(K_EXTRA, 0, 65535), .n[1] = 1000, .v[0] = 1), { .verb = WORK },
		  WQE(SKUA_WQE_TSO, 1, 1, ALL, .n[1] = 1448, .v[1] = 14 | 0x40 << 8), { .verb = WORK },
		  { .verb = POLL, .n[0] = 99 }, { .verb = POLL, .a = 1, .n[0] = 99 });
	FUZZ_SEED("raw segments", CONFIG(.a = 0x60, .n[1] = 0x20), RQE(1, ALL),
		  WQE(SKUA_WQE_TSO, 1, 2, ALL, .n[1] = 700), { .verb = WORK },
		  WQE(SKUA_WQE_TSO, 1, 1, SGE(K_ALL, 0, 5000), .n[1] = 9000), { .verb = WORK },
		  { .verb = POLL, .a = 1, .n[0] = 9 });
	/* Two pages of what was K_FAST, for the peer to write; then each side ends that. */
	FUZZ_SEED("registered", CONFIG(.a = 8), WQE(SKUA_WQE_LOCAL_INV, 1, 0, 0, .n[2] = K_FAST),
		  WQE(SKUA_WQE_REG_MR, 1, 0, 5, .n[2] = K_FAST, .v = { 15, 64 << 16 | 8000 }),
		  WQE(SKUA_WQE_SEND, SIGNALED, 1, SGE(K_FAST, 0, 5000)), RQE(1, ALL), { .verb = WORK },
		  WQE(SKUA_WQE_WRITE, 1, 1, ALL, .a = 1, .n[2] = K_FAST), { .verb = WORK }, RQE(0, ALL),
		  WQE(SKUA_WQE_SEND_INV, 1, 0, ALL, .a = 1, .n[2] = K_FAST), { .verb = WORK },
		  WQE(SKUA_WQE_REG_MR, 1, 0, 7, .n[2] = K_FAST | 1 << 24, .v = { 1, 4096 }), { .verb = WORK },
		  WQE(SKUA_WQE_REG_MR, 1, 0, 7, .n[2] = K_ALL, .v = { 1, 4096 }), { .verb = WORK });
	/* The same with one piece, and then three. */
	FUZZ_SEED("pieces", CONFIG(.a = 8), WQE(SKUA_WQE_LOCAL_INV, 1, 0, 0, .n[2] = K_FAST),
		  { .verb = POST, .b = SKUA_WQE_REG_MR, .c = 1, .n[2] = K_FAST, .v = { 7 | 1 << 18, 1 << 16 | 8000 } },
		  WQE(SKUA_WQE_SEND, SIGNALED, 1, SGE(K_FAST, 0, 5000)), RQE(1, ALL), { .verb = WORK },
		  WQE(SKUA_WQE_WRITE, 1, 1, ALL, .a = 1, .n[2] = K_FAST), { .verb = WORK }, RQE(0, ALL),
		  WQE(SKUA_WQE_SEND_INV, 1, 0, ALL, .a = 1, .n[2] = K_FAST), { .verb = WORK },
		  { .verb = POST, .b = SKUA_WQE_REG_MR, .c = 1, .n[2] = K_FAST, .v = { 7 | 1 << 18, 3 << 16 | 3000 },
		    .bytes = { 200, 1, 90, 7, 0, 33 } }, { .verb = WORK },
		  WQE(SKUA_WQE_READ, 1, 1, ALL, .a = 1, .n[2] = K_FAST), { .verb = WORK });
	/* Windows of both types over parts of K_BIND; bound anew, ended by both sides, by RESET, and with their MR. */
	FUZZ_SEED("windows", CONFIG(),
		  WQE(SKUA_WQE_BIND_MW, 1, 0, 0, .n[2] = K_WINDOW_1, .v = { K_BIND << 8 | 14, 16 << 16 | 0x2000 }),
		  WQE(SKUA_WQE_BIND_MW, 1, 0, 0, .n[2] = K_WINDOW_2 | 1 << 24, .v = { K_BIND << 8 | 38, 0x2f00 }),
		  { .verb = WORK }, WQE(SKUA_WQE_WRITE, 1, 1, ALL, .a = 1, .n[1] = 16, .n[2] = K_WINDOW_1),
		  WQE(SKUA_WQE_READ, 1, 1, ALL, .a = 1, .n[2] = K_WINDOW_2), { .verb = WORK },
		  { .verb = REGION, .b = K_BIND },
		  WQE(SKUA_WQE_BIND_MW, 1, 0, 0, .n[2] = K_WINDOW_1, .v = { K_BIND << 8 | 14, 0 }), RQE(0, ALL),
		  WQE(SKUA_WQE_SEND_INV, 1, 0, ALL, .a = 1, .n[2] = K_WINDOW_2), { .verb = WORK },
		  WQE(SKUA_WQE_LOCAL_INV, 1, 0, 0, .n[2] = K_WINDOW_2),
		  WQE(SKUA_WQE_BIND_MW, 1, 0, 0, .n[2] = K_WINDOW_2, .v = { K_BIND << 8 | 6, 0x100 }), { .verb = WORK },
		  { .verb = MODIFY, .c = 2 }, { .verb = REGION, .b = K_BIND, .c = 1 },
		  WQE(SKUA_WQE_BIND_MW, 1, 0, 0, .n[2] = K_WINDOW_2, .v = { K_BIND << 8 | 6, 0x100 }), { .verb = WORK },
		  { .verb = REGION, .b = K_WINDOW_2 },
		  WQE(SKUA_WQE_BIND_MW, 1, 0, 0, .n[2] = K_ALL, .v = { K_BIND << 8 | 6, 0x100 }), { .verb = WORK });
	FUZZ_SEED("device-memory", CONFIG(), RQE(1, SGE(K_DM, 0, 4096)),
		  WQE(SKUA_WQE_SEND, SIGNALED, 1, SGE(K_DM, 0x100, 4096)), { .verb = WORK },
		  WQE(SKUA_WQE_WRITE, 1, 1, ALL, .n[1] = 16, .n[2] = K_DM), WQE(SKUA_WQE_READ, 1, 1, ALL, .n[2] = K_DM),
		  WQE(SKUA_WQE_READ, 1, 1, SGE(K_DM, 0x2000, 0x1000), .n[2] = K_DM), { .verb = WORK },
		  WQE(SKUA_WQE_READ, 1, 1, ALL, .n[2] = K_DM), { .verb = STEPS, .n[0] = 2 },
		  { .verb = REGION, .a = 1, .b = K_DM, .c = 1 }, { .verb = WORK },
		  WQE(SKUA_WQE_FETCH_ADD, 1, 1, SGE(K_DM, 8, 8), .n[2] = K_DM), { .verb = WORK });
	FUZZ_SEED("late", CONFIG(), WQE(SKUA_WQE_SEND, SIGNALED, 1, ALL), { .verb = WORK },
		  { .verb = PASS, .n[0] = 1000 }, RQE(1, ALL), { .verb = PASS, .n[0] = 1000 },
		  { .verb = LINK }, WQE(SKUA_WQE_READ, 1, 1, ALL), { .verb = PASS, .n[0] = 70000 },
		  { .verb = LINK, .b = 1 }, { .verb = PASS, .n[0] = 70000 });
	FUZZ_SEED("errors", CONFIG(), WQE(SKUA_WQE_WRITE, 1, 1, SGE(K_READ, 0, 100)),
		  WQE(SKUA_WQE_READ, 1, 1, SGE(K_READ, 0, 100)), { .verb = WORK },
		  { .verb = MODIFY, .c = 2, .b = 2, .n[1] = 0 }, RQE(1, SGE(K_ALL, 0, 10)),
		  WQE(SKUA_WQE_SEND, 1, 1, ALL), { .verb = WORK }, { .verb = MODIFY, .c = 2 },
		  WQE(SKUA_WQE_WRITE, 1, 1, ALL, .n[2] = K_OTHER_PD), { .verb = WORK },
		  { .verb = MODIFY, .c = 1 }, { .verb = MODIFY, .a = 1 });
	FUZZ_SEED("records", CONFIG(), { .verb = RECORD, .b = 3, .v[0] = SKUA_CQ_ARM(2, 1, 0) },
		  WQE(SKUA_WQE_NOP, 1, 0, 0), { .verb = WORK }, { .verb = BELL, .b = 1, .c = 1 },
		  { .verb = RECORD, .n[0] = 257 }, { .verb = BELL }, { .verb = WORK },
		  { .verb = MODIFY, .c = 2 }, { .verb = RECORD, .b = 1, .n[0] = 65 },
		  { .verb = RECORD, .b = 2, .n[0] = 9 }, { .verb = PATCH, .n[0] = 64 });
	FUZZ_SEED("taken", CONFIG(), WQE(SKUA_WQE_WRITE, 1, 1, SGE(K_EXTRA, 0, 30000), .n[2] = K_EXTRA),
		  { .verb = STEPS, .n[0] = 1 }, { .verb = MEMORY }, { .verb = WORK },
		  { .verb = MEMORY, .a = 1 }, { .verb = MODIFY, .c = 2 },
		  WQE(SKUA_WQE_READ, 1, 1, SGE(K_EXTRA, 0, 30000), .n[2] = K_EXTRA),
		  { .verb = REGION, .a = 1, .b = K_EXTRA }, { .verb = WORK },
		  { .verb = REGION, .a = 1, .b = K_EXTRA, .c = 1 });
	/* What is loaded a second time is not what it was: records of both sides, then rings and lists, then payload. */
	FUZZ_SEED("races", CONFIG(), { .verb = RACE, .b = RACE_ADD, .c = 3, .v[0] = 1 }, RQE(0, ALL), RQE(1, ALL),
		  WQE(SKUA_WQE_SEND, SIGNALED, 1, ALL), WQE(SKUA_WQE_SEND, SIGNALED, 2, ALL), { .verb = WORK },
		  { .verb = RACE, .a = 1, .b = RACE_SET, .c = 15, .v[0] = UINT64_MAX },
		  WQE(SKUA_WQE_SEND, SIGNALED, 1, ALL), WQE(SKUA_WQE_READ, SIGNALED, 1, ALL, .n[2] = K_READ), { .verb = WORK },
		  { .verb = MODIFY, .c = 2 }, { .verb = RACE, .b = RACE_SET, .c = 15, .v[0] = UINT64_MAX },
		  WQE(SKUA_WQE_SEND, SIGNALED, 4, ALL), { .verb = WORK }, { .verb = POLL, .n[0] = 99 });
	FUZZ_SEED("races of frames", CONFIG(.a = 0x20), RQE(1, ALL),
		  { .verb = RACE, .b = RACE_XOR | 4, .c = 15, .v[0] = 0xff },
		  WQE(SKUA_WQE_TSO, 1, 1, ALL, .n[1] = 1448), { .verb = WORK },
		  WQE(SKUA_WQE_SEND, SKUA_WQE_IP_CSUM, 1, SGE(K_ALL, 0, 100)), { .verb = WORK });
	FUZZ_SEED("races of lists", CONFIG(.a = 8), WQE(SKUA_WQE_LOCAL_INV, 1, 0, 0, .n[2] = K_FAST),
		  { .verb = RACE, .b = RACE_SET, .c = 15, .v[0] = UINT64_MAX },
		  WQE(SKUA_WQE_REG_MR, 1, 0, 5, .n[2] = K_FAST, .v = { 15, 64 << 16 | 8000 }), { .verb = WORK });
}
