// Both ends of extended reliable connections for the NIC's tests: an SRQ with its CQ, and a connected pair of
// queue pairs, one of each XRC kind.
#pragma once

#include "two_nics.hpp"

namespace weir::rnic::test {

inline constexpr std::uint64_t xrc_domain = 5;

struct XrcReceiver {
  explicit XrcReceiver(Nic& its_nic, std::uint64_t xrcd = xrc_domain, std::uint32_t protection = pd)
      : nic(its_nic),
        cq(nic.adapter().create_cq(64, 1)),
        srq(nic.adapter().create_srq(protection, 16, 2, {xrcd, cq})) {}
  ~XrcReceiver() {
    nic.adapter().destroy(srq);
    nic.adapter().destroy(cq);
  }
  void post(std::uint64_t id, const Sge& sge) {
    ASSERT_EQ(srq->post(id, {&sge, 1}), SharedReceiveQueue::Posted::ok);
    if (srq->take_parked()) nic.adapter().kick_all_parked_on(*srq);
  }
  std::optional<WorkCompletion> poll() { return Endpoint::poll(*cq); }
  Nic& nic;
  CompletionQueue* cq;
  SharedReceiveQueue* srq;
};

// The ways to the other end and back.
struct XrcPaths {
  Path there{}, back{};
};

struct XrcPair {
  XrcPair(Nic& sending, Nic& answering, std::uint8_t rnr_retry = 7, const XrcPaths& paths = {})
      : from(sending), to(answering), cq(sending.adapter().create_cq(64, 1)) {
    QpConfig config;
    config.type = QpType::xrc_send;
    config.pd = pd;
    config.send_cq = cq;
    config.caps = {.max_send_wr = 16, .max_send_sge = 4, .max_inline = 64};
    sender = from.adapter().create_qp(config);
    QpConfig answers;
    answers.type = QpType::xrc_recv;
    answers.xrcd = xrc_domain;
    target = to.adapter().create_qp(answers);
    const std::uint32_t rights = access::remote_write | access::remote_read | access::remote_atomic;
    QpAttributes at_sender{.destination = target->qpn(),
                           .path = paths.there,
                           .timeout = 10,
                           .retry_cnt = 1,
                           .rnr_retry = rnr_retry,
                           .min_rnr_timer = 12};
    QpAttributes at_target{
        .access = rights, .destination = sender->qpn(), .path = paths.back, .min_rnr_timer = 12};
    for (const QpState state : {QpState::init, QpState::rtr, QpState::rts}) {
      sender->modify(state, at_sender);
      target->modify(state, at_target);
    }
  }
  ~XrcPair() {
    from.adapter().destroy(sender);
    if (target != nullptr) to.adapter().destroy(target);
  }
  PostResult post(SendRequest request, Qpn srqn, std::vector<Sge> sges) {
    request.flags |= send_flag::signaled;
    request.remote_srqn = srqn.value();
    PostResult result;
    sender->begin_posting();
    if (SendWqe* wqe = sender->append(request, result)) result = sender->set_sges(*wqe, sges);
    sender->ring_doorbell();
    return result;
  }
  std::optional<WorkCompletion> poll() { return Endpoint::poll(*cq); }
  Nic &from, &to;
  CompletionQueue* cq;
  QueuePair *sender, *target;
};

}  // namespace weir::rnic::test
