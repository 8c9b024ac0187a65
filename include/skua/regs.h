/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua hardware interface: PCI identity, BARs and the registers of BAR0.
 * Manual: Documentation/manual/registers.rst
 *
 * All registers are 32 bits wide, little endian, and accessed as aligned 32-bit
 * words; a 64-bit value is a LO register and the HI register behind it.
 */
#ifndef SKUA_REGS_H
#define SKUA_REGS_H

/* PCI identity, until an id of its own is assigned. */
#define SKUA_PCI_VENDOR_ID	0x1af4
#define SKUA_PCI_DEVICE_ID	0x10f7
#define SKUA_PCI_CLASS		0x020000	/* Ethernet controller */

/* BARs; each is 64 bits wide and takes two slots. */
#define SKUA_BAR_REGS		0		/* registers, MSI-X table and PBA */
#define SKUA_BAR_DOORBELL	2		/* doorbell pages */

#define SKUA_BAR_REGS_SIZE	0x8000
#define SKUA_MSIX_TABLE_OFFSET	0x4000
#define SKUA_MSIX_PBA_OFFSET	0x6000

/* Read only: "SKUA" in ASCII, and the version of the interface. */
#define SKUA_REG_SIGNATURE	0x000
#define SKUA_REG_VERSION	0x004
#define SKUA_REG_STATUS		0x008		/* SKUA_STATUS_* */
#define SKUA_REG_CONTROL	0x00c		/* SKUA_CONTROL_*, read/write */
#define SKUA_REG_HEALTH		0x010		/* enum skua_health */
#define SKUA_REG_FEATURES_LO	0x018		/* features offered, SKUA_F_* */
#define SKUA_REG_FEATURES_HI	0x01c
#define SKUA_REG_ACCEPTED_LO	0x020		/* features accepted, read/write */
#define SKUA_REG_ACCEPTED_HI	0x024
#define SKUA_REG_CLOCK_LO	0x028		/* a read latches CLOCK_HI */
#define SKUA_REG_CLOCK_HI	0x02c

/* Command queue, read/write while STATUS.ENABLED is clear. */
#define SKUA_REG_CMD_RING_LO	0x040		/* ring of struct skua_cmd */
#define SKUA_REG_CMD_RING_HI	0x044
#define SKUA_REG_CMD_CPL_LO	0x048		/* ring of struct skua_cmd_cpl */
#define SKUA_REG_CMD_CPL_HI	0x04c
#define SKUA_REG_CMD_DBR_LO	0x050		/* struct skua_dbr */
#define SKUA_REG_CMD_DBR_HI	0x054
#define SKUA_REG_CMD_LOG_SIZE	0x058		/* log2 of the entries of both rings */
#define SKUA_REG_CMD_MAX_LOG	0x05c		/* read only: largest CMD_LOG_SIZE */

#define SKUA_SIGNATURE		0x41554b53	/* "SKUA" read as bytes */

/* VERSION: another major version is another interface; minor ones only add. */
#define SKUA_VERSION_MAJOR	1
#define SKUA_VERSION_MINOR	0
#define SKUA_VERSION(major, minor)	(((major) << 16) | (minor))
#define SKUA_VERSION_GET_MAJOR(v)	((v) >> 16)

#define SKUA_STATUS_READY	0x1		/* reset is complete */
#define SKUA_STATUS_ENABLED	0x2		/* commands are served */
#define SKUA_STATUS_FATAL	0x4		/* dead until reset; HEALTH says why */

#define SKUA_CONTROL_RESET	0x1		/* write 1: reset everything */
#define SKUA_CONTROL_ENABLE	0x2		/* write 1: accept features, start commands */

enum skua_health {
	SKUA_HEALTH_OK		 = 0,
	SKUA_HEALTH_FEATURES	 = 1,	/* accepted a feature that was not offered */
	SKUA_HEALTH_CMD_SIZE	 = 2,	/* CMD_LOG_SIZE out of range */
	SKUA_HEALTH_CMD_ADDRESS	 = 3,	/* a command ring or record cannot be reached */
	SKUA_HEALTH_CMD_OVERRUN	 = 4,	/* more commands published than the ring holds */
	SKUA_HEALTH_EQ_ADDRESS	 = 5,	/* an EQ other than for completions is out of reach */
	SKUA_HEALTH_INTERNAL	 = 6,	/* the device's own fault */
	SKUA_HEALTH_INJECTED	 = 7,	/* a fault asked for by a test */
};

/* Features, bit numbers in FEATURES and ACCEPTED. */
#define SKUA_F_EVENT_IDX	0	/* doorbell records with an event index */
#define SKUA_F_ETHERNET		1	/* ETH queue pairs */
#define SKUA_F_RC		2	/* RC queue pairs: SEND, WRITE, READ */
#define SKUA_F_INVALIDATE	3	/* SEND with invalidate and LOCAL_INV */
#define SKUA_F_ATOMIC		4	/* CMP_SWAP and FETCH_ADD of RC */
#define SKUA_F_ETH_CSUM		5	/* ETH: checksums filled in and checked */
#define SKUA_F_ETH_RSS		6	/* ETH: received frames spread over queue pairs */
#define SKUA_F_UC		7	/* UC queue pairs: SEND, WRITE */
#define SKUA_F_UD		8	/* UD and GSI queue pairs, multicast */
#define SKUA_F_SRQ		9	/* shared receive queues */
#define SKUA_F_XRC		10	/* XRC domains and queue pairs */
#define SKUA_F_MW		11	/* memory windows of type 1 and 2 */
#define SKUA_F_FAST_REG		12	/* REG_MR: memory regions are filled by work requests */
#define SKUA_F_SG_GAPS		13	/* REG_MR: lists of pieces of any alignment */
#define SKUA_F_MR_MODIFY	14	/* MODIFY_MR */
#define SKUA_F_ON_DEMAND	15	/* memory regions whose pages come on demand */
#define SKUA_F_DM		16	/* device memory */
#define SKUA_F_FLUSH		17	/* FLUSH of RC */
#define SKUA_F_ATOMIC_WRITE	18	/* ATOMIC WRITE of RC */
#define SKUA_F_CQ_RESIZE	19	/* RESIZE_CQ */
#define SKUA_F_CQ_MODER		20	/* MODIFY_CQ */
#define SKUA_F_RAW_PACKET	22	/* ETH queue pairs of programs, and flows */
#define SKUA_F_TSO		23	/* TCP payload that the device cuts into frames */
#define SKUA_F_COUNTER_SET	24	/* queue pairs that count apart from the others */
#define SKUA_F_RATE_LIMIT	26	/* rates of queue pairs */
#define SKUA_F_ECE		27	/* options that peers agree on when they connect */
#define SKUA_F_MR_REVOKE	28	/* INVALIDATE_MR */
#define SKUA_F_IP_CSUM		29	/* ETH: the device finds the checksums that it fills in */
#define SKUA_F_TAG_MATCHING	30	/* shared receive queues with tags */
#define SKUA_F_MASKED_ATOMIC	31	/* MASKED_CMP_SWAP and MASKED_FETCH_ADD of RC */
#define SKUA_F_STRIP_CVLAN	32	/* ETH: VLAN tags of received frames go to their CQEs */

#define SKUA_PAGE_SIZE		4096	/* unit of doorbell pages and page-list pages */

#endif /* SKUA_REGS_H */
