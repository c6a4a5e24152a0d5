// Which processes have an xrc_recv queue pair open (ibv_open_qp(3)): it lives while any process has it open.
// Its context stays in the segment of the process that made it, its home. Each process that opens it has its
// own QueuePair over that context; an xrc_recv queue pair has neither rings nor CQs, so nothing else needs
// sharing. When the home closes its last handle, it keeps the queue pair until the last process that has it
// open closes it or ends.
//
// When the home ends, its segment remains with the processes that have mapped it. For the connected
// initiator, the queue pair exists as long as some process that the initiator can reach has it open
// (requester.cpp). No other process can find it then.
//
// Ordering: an opener records itself in the home's segment and then checks whether it may open; the home,
// before destroying it, announces that and then checks for openers. Both are seq_cst, so one of them sees the
// other.
#pragma once

#include <utility>

#include "rnic/queue_pair/qp_common.hpp"

namespace weir::rnic {

class XrcOpeners {
 public:
  // `home`: nullptr for our own.
  XrcOpeners(const QpCommon& qp, PeerPtr home = nullptr) : qp_(qp), home_(std::move(home)) {}

  // Our own: the list is in our segment. nullptr: not a queue pair that others may open.
  void list_at(QpOpeners* list) { list_ = list; }
  // Another process's: records us as an opener with its home. Returns its context; nullptr: none in that
  // domain.
  QpContext* open(Qpn number, std::uint64_t xrcd);
  void close();

  const PeerPtr& home() const { return home_; }
  // Our own: other processes have it open, so it must not be destroyed. False: none has it open, and none can
  // any more.
  bool stays_open() const;
  void forget(Slot dead) const;
  void report_fault(Fault) const;

 private:
  const QpCommon& qp_;
  PeerPtr home_;
  QpOpeners* list_ = nullptr;
};

}  // namespace weir::rnic
