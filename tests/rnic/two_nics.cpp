#include "two_nics.hpp"

#include <algorithm>
#include <cstdlib>

namespace weir::rnic::test {

// ---- Memory

Memory::Memory(Nic& nic, std::size_t bytes, std::uint32_t rights, Reach reach, std::uint32_t domain)
    : nic_(&nic), bytes_(bytes) {
  const auto key = nic.adapter().table().insert({.addr = addr(),
                                                 .base = addr(),
                                                 .length = bytes,
                                                 .access = rights,
                                                 .pd = domain,
                                                 .window = reach == Reach::mapped ? 1u : 0u});
  if (!key) std::abort();
  key_ = *key;
}

void Memory::fill(std::uint32_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t at = 0; at < bytes_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(bytes_.data() + at, &word, std::min(sizeof word, bytes_.size() - at));
  }
}

// ---- Endpoint

Endpoint::Endpoint(Nic& nic, const EndpointOptions& options) : nic_(nic), owns_cqs_(options.cq == nullptr) {
  send_cq_ = owns_cqs_ ? nic.adapter().create_cq(1024, 1) : options.cq;
  recv_cq_ = owns_cqs_ ? nic.adapter().create_cq(1024, 2) : options.cq;
  QpConfig config;
  config.type = options.type;
  config.pd = options.domain;
  config.send_cq = send_cq_;
  config.recv_cq = recv_cq_;
  config.srq = options.srq;
  config.caps = options.caps;
  config.signal_all = options.signal_all;
  qp_ = nic.adapter().create_qp(config);
  if (qp_ == nullptr) std::abort();
  attributes_ = {.access = options.qp_access,
                 .destination = Qpn(),
                 .qkey = options.qkey,
                 .timeout = options.timeout,
                 .retry_cnt = options.retry_cnt,
                 .rnr_retry = options.rnr_retry,
                 .min_rnr_timer = options.min_rnr_timer,
                 .max_rd_atomic = options.max_rd_atomic,
                 .max_dest_rd_atomic = options.max_dest_rd_atomic};
}

Endpoint::~Endpoint() {
  destroy_qp();
  if (!owns_cqs_) return;
  nic_.adapter().destroy(send_cq_);
  nic_.adapter().destroy(recv_cq_);
}

void Endpoint::destroy_qp() {
  if (qp_ != nullptr) nic_.adapter().destroy(qp_);
  qp_ = nullptr;
}

void Endpoint::to_rtr(Qpn destination) {
  attributes_.destination = destination;
  modify(QpState::init);
  modify(QpState::rtr);
}

void Endpoint::to_rts(Qpn destination) {
  to_rtr(destination);
  modify(QpState::rts);
}

PostResult Endpoint::post(const SendRequest& request, std::vector<Sge> sges) {
  PostResult result;
  qp_->begin_posting();
  if (SendWqe* wqe = qp_->append(request, result)) {
    result = qp_->set_sges(*wqe, sges);
    if (result != PostResult::ok) qp_->retract();
  }
  qp_->ring_doorbell();
  return result;
}

PostResult Endpoint::post_inline(const SendRequest& request, std::span<const std::byte> payload) {
  PostResult result;
  qp_->begin_posting();
  if (SendWqe* wqe = qp_->append(request, result)) {
    result = qp_->add_inline(*wqe, payload);
    if (result != PostResult::ok) qp_->retract();
  }
  qp_->ring_doorbell();
  return result;
}

PostResult Endpoint::send(std::uint64_t id, const Sge& sge, std::uint32_t flags) {
  return post({.wr_id = id, .opcode = SendOpcode::send, .flags = flags}, {sge});
}

PostResult Endpoint::write(std::uint64_t id, const Sge& from, std::uint64_t to, std::uint32_t rkey,
                           std::uint32_t flags) {
  return post(
      {.wr_id = id, .opcode = SendOpcode::rdma_write, .flags = flags, .remote_addr = to, .rkey = rkey},
      {from});
}

PostResult Endpoint::read(std::uint64_t id, const Sge& into, std::uint64_t from, std::uint32_t rkey) {
  return post({.wr_id = id,
               .opcode = SendOpcode::rdma_read,
               .flags = send_flag::signaled,
               .remote_addr = from,
               .rkey = rkey},
              {into});
}

PostResult Endpoint::recv(std::uint64_t id, std::vector<Sge> sges) {
  const std::lock_guard lock(qp_->receive_lock());
  const PostResult result = qp_->post_recv(id, sges);
  qp_->recv_doorbell();
  return result;
}

std::optional<WorkCompletion> Endpoint::poll(CompletionQueue& cq) {
  WorkCompletion wc;
  return cq.poll({&wc, 1}) == 1 ? std::optional(wc) : std::nullopt;
}

std::vector<WorkCompletion> Endpoint::drain(CompletionQueue& cq) {
  std::vector<WorkCompletion> all;
  while (auto wc = poll(cq)) all.push_back(*wc);
  return all;
}

// ---- fixture

void connect(Endpoint& a, Endpoint& b) {
  a.to_rtr(b.qpn());
  b.to_rtr(a.qpn());
  a.modify(QpState::rts);
  b.modify(QpState::rts);
}

void TwoNics::connect_pair(const EndpointOptions& a_options, const EndpointOptions& b_options) {
  a = std::make_unique<Endpoint>(a_nic, a_options);
  b = std::make_unique<Endpoint>(b_nic, b_options);
  connect(*a, *b);
}

testing::AssertionResult completed(const std::optional<WorkCompletion>& wc, std::uint64_t id,
                                   WcStatus status) {
  if (!wc) return testing::AssertionFailure() << "no completion; wanted wr_id " << id;
  if (wc->wr_id != id || wc->status != status)
    return testing::AssertionFailure() << "wr_id " << wc->wr_id << " status " << static_cast<int>(wc->status)
                                       << "; wanted wr_id " << id << " status " << static_cast<int>(status);
  return testing::AssertionSuccess();
}

}  // namespace weir::rnic::test
