// Which processes have an xrc_recv queue pair open (ibv_open_qp(3)): it lives while anybody has.
//
// Its context stays in the segment of the process that made it, its home. Whoever opens it has a QueuePair of
// its own over that context; an xrc_recv queue pair has neither rings nor CQs, so there is nothing else to
// share. The home keeps one of which it has no handle any more, until the last process that has it open
// closes it, or ends.
//
// When the home ends, its segment remains with those who have mapped it: to the initiator that is connected
// the queue pair is there while some process that it can reach has it open (requester.cpp). Nobody else can
// find it then.
//
// Ordering: who opens it notes that in the home's segment and then looks whether it may; the home that is
// about to destroy it says so and then looks who noted. Both are seq_cst, so one of them sees the other.
#pragma once

#include <utility>

#include "rnic/queue_pair/qp_common.hpp"

namespace weir::rnic {

class XrcOpeners {
 public:
  // `home`: nullptr: ours.
  XrcOpeners(const QpCommon& qp, PeerPtr home = nullptr) : qp_(qp), home_(std::move(home)) {}

  // Ours: the list lies in our segment. nullptr: it is no queue pair that others may open.
  void list_at(QpOpeners* list) { list_ = list; }
  // Another's: notes us with its home. Where it is; nullptr: there is none in that domain.
  QpContext* open(Qpn number, std::uint64_t xrcd);
  void close();

  const PeerPtr& home() const { return home_; }
  // Ours: others have it open, so it is not to be destroyed. False: none has, and none can any more.
  bool stays_open() const;
  void forget(Slot dead) const;
  void tell_of_fault(Fault) const;

 private:
  const QpCommon& qp_;
  PeerPtr home_;
  QpOpeners* list_ = nullptr;
};

}  // namespace weir::rnic
