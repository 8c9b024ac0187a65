/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What rdma-core's header of this name gives the ring code, for tests on a bare host. */
#ifndef SKUA_TEST_UDMA_BARRIER_H
#define SKUA_TEST_UDMA_BARRIER_H

#define udma_to_device_barrier()	__atomic_thread_fence(__ATOMIC_RELEASE)
#define udma_from_device_barrier()	__atomic_thread_fence(__ATOMIC_ACQUIRE)

#endif /* SKUA_TEST_UDMA_BARRIER_H */
