#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Ceph's messenger between two guests, by the benchmark that Ceph has for it. It exchanges QPNs and GIDs by TCP, and
# moves all messages by RC, into the receives of an SRQ. Each message has checksums of its header and its data, and a
# connection on which one is wrong is dropped, so that the benchmark does not end.

. "$(dirname "$0")/peer.sh"

port=10001
# By default, a process posts 4096 receives of 128 KiB.
options='--ms_type=async+rdma --ms_public_type=async+rdma --ms_cluster_type=async+rdma
	--ms_async_rdma_device_name=skua_0 --ms_async_rdma_receive_buffers=1024 --ms_async_rdma_receive_queue_len=256
	--auth_cluster_required=none --auth_service_required=none --auth_client_required=none
	--log_file= --log_to_stderr=true --err_to_stderr=true'
# The lab puts its programs here (tools/lab/tests/ceph.py).
where=$(dirname "$here")/ceph
settings="env LD_LIBRARY_PATH=$where CEPH_CONF=/dev/null CEPH_ARGS='${options//[$'\n\t']/ }'"

serve() { start "$settings $where/ceph_perf_msgr_server $address:$port 1 0" && within 30 ready $port; }
# use MESSAGES BYTES: of one connection, with four messages under way.
use() { eval "timeout $((120 * slowness)) $settings $where/ceph_perf_msgr_client $address:$port 1 4 $1 0 $2" >/tmp/out 2>&1; }
# It prints this when all were answered.
messages() { use "$@" && grep -q "Total op $1 run time" /tmp/out || { cat /tmp/out; return 1; }; }

t 'a server' serve
t 'small messages' by_rdma 100000 messages 200 64
t 'large messages' by_rdma 10000000 messages 20 1048576
for fault in outage loss; do
	t "messages, $fault" during $fault messages 100 262144
done
t 'afterwards' messages 20 4096
t 'the server ends' stop
t 'nothing is left' nothing_is_left
end
