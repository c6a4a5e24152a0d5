// What `weir run --check` asks this NIC and verbs cannot say. verbs/check looks these functions up by name
// and does without them over another libibverbs. Control path only.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "rnic/same_host/access_refusal.hpp"

struct WeirTarget {
  bool is_here = false;  // a process of this host, reached by shared memory; else the rest is not known
  bool is_ours = false;  // a queue pair of this process
  int pid = 0;           // 0: not visible in our pid namespace
  bool exists = false, is_connected_to_us = false;
  ibv_qp_state state = IBV_QPS_UNKNOWN;
  bool answers_reads = false;  // its max_dest_rd_atomic is not 0
  unsigned queue_pair_access = 0;
  // Of the access asked about; the region only if there is one of that key.
  weir::rnic::AccessRefusal refusal = weir::rnic::AccessRefusal::none;
  std::uint64_t region_addr = 0, region_length = 0;
  unsigned region_access = 0;
};

// The target of a connected queue pair, and whether it would now accept that access.
extern "C" void weir_inspect_target(ibv_qp*, const weir::rnic::RemoteAccess*, WeirTarget*);

// The completions that the CQ holds.
extern "C" std::size_t weir_unpolled(ibv_cq*);
