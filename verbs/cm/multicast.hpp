// The multicast groups of an identifier: an address is a group's GID on RoCE v2, so joining asks no manager;
// what is to be done is to attach the queue pair, by the interface of the identifier's address, on the
// application's thread, before it sees the event.
//
// Threading: any thread, one identifier at a time but for the pair of an application's call and its events,
// which `mutex` is for.
#pragma once

#include <rdma/rdma_cma.h>

#include <mutex>
#include <vector>

#include "verbs/cm/endpoint.hpp"

namespace weir::cm {

bool is_multicast(const Endpoint& address);

struct Memberships {
  struct Membership {
    Endpoint address;
    bool receives;  // a full member; else it only sends
    bool attached = false;
  };
  std::mutex mutex;
  std::vector<Membership> all;
};

// Where to: the group, and the place in the GID table of our address there.
struct GroupPlace {
  ibv_gid group;
  int own_index;
};
// 0 or an errno.
int attach(Memberships& memberships, const GroupPlace& to, ibv_qp* qp, bool& left);
int leave(Memberships& memberships, const Endpoint& address, ibv_qp* qp);

}  // namespace weir::cm
