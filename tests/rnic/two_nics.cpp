#include "two_nics.hpp"

#include <sys/mman.h>

namespace weir::rnic::test {
namespace {

constexpr std::size_t test_segment_bytes = 512ull << 20;  // virtual; far more than any test touches

std::byte* map_zeros(std::size_t bytes) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(memory);
}

bool copy(std::span<const iovec> from, std::span<const iovec> to) {
  std::vector<std::byte> bytes;
  for (const iovec& piece : from) {
    const auto* data = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), data, data + piece.iov_len);
  }
  std::size_t done = 0;
  for (const iovec& piece : to) {
    const std::size_t length = std::min(piece.iov_len, bytes.size() - done);
    if (length != 0) std::memcpy(piece.iov_base, bytes.data() + done, length);
    done += length;
  }
  return done == bytes.size();
}

}  // namespace

// A process as another one (or itself) sees it.
class MemoryPeer final : public Peer {
 public:
  MemoryPeer(Host& host, Nic& target, Slot from) : host_(host), target_(target), from_(from) {
    slot_ = target.slot_;
    segment_ = reinterpret_cast<SegmentHeader*>(target.segment_memory_);
    segment_size_ = test_segment_bytes;
    tpt_ = reinterpret_cast<const TptEntry*>(target.table_memory_);
  }
  void died() { alive_.store(false, std::memory_order_release); }

  std::byte* window(const TptEntry& entry, std::uint64_t addr, std::uint64_t) override {
    if (entry.window == 0) return nullptr;
    return static_cast<std::byte*>(ProtectionTable::address(entry, addr));
  }
  Transfer write(std::span<const iovec> local, const Remote& remote) override {
    return transfer(local, remote.pieces);
  }
  Transfer read(std::span<const iovec> local, const Remote& remote) override {
    return transfer(remote.pieces, local);
  }
  void kick(Qpn parked) override {
    deliver([parked](Nic& nic) { nic.adapter().kicked(parked); });
  }
  void raise_cq_event(std::uint32_t cq_index) override {
    deliver([cq_index](Nic& nic) { nic.adapter().raise_cq(cq_index); });
  }
  void report_fault(Qpn theirs) override {
    deliver([theirs](Nic& nic) { nic.adapter().faulted(theirs); });
  }
  void report_srq_limit(std::uint32_t srq_index) override {
    deliver([srq_index](Nic& nic) { nic.adapter().srq_limit(srq_index); });
  }
  void return_receive(const TakenFrom& taken) override {
    deliver([from = from_, taken](Nic& nic) { nic.adapter().receive_returned(from, taken); });
  }

 private:
  Transfer transfer(std::span<const iovec> from, std::span<const iovec> to) {
    const Transfer outcome = host_.on_copy ? host_.on_copy() : Transfer::done;
    return outcome == Transfer::done && !copy(from, to) ? Transfer::fault : outcome;
  }
  template <class Call>
  void deliver(Call call) {
    if (!alive()) return;
    host_.post([&host = host_, slot = slot_, call] {
      if (Nic* nic = host.living(slot)) call(*nic);
    });
  }
  Host& host_;
  Nic& target_;
  const Slot from_;  // whose view of the target this is
};

// ---- Nic
// ------------------------------------------------------------------------------------------------------

Nic::Nic(Host& host, Slot slot)
    : host_(host),
      slot_(slot),
      segment_memory_(map_zeros(test_segment_bytes)),
      table_memory_(map_zeros(tpt_bytes)),
      segment_(std::make_unique<Segment>(segment_memory_, test_segment_bytes)),
      adapter_(
          std::make_unique<Adapter>(slot, *segment_, reinterpret_cast<TptEntry*>(table_memory_), *this)) {}

Nic::~Nic() {
  adapter_.reset();
  ::munmap(segment_memory_, test_segment_bytes);
  ::munmap(table_memory_, tpt_bytes);
}

PeerPtr Nic::peer(Slot slot, Wait) {
  Nic* target = host_.living(slot);
  const std::lock_guard lock(mutex_);
  if (target == nullptr) return nullptr;
  std::shared_ptr<MemoryPeer>& place = peers_[slot];
  if (!place || !place->alive()) place = std::make_shared<MemoryPeer>(host_, *target, slot_);
  return place;
}

HostPort::Reached Nic::reach(Slot slot, Ticket& ticket) {
  const bool undecided = on_reach && !on_reach(slot);
  ticket = undecided ? 1 : 0;
  if (undecided) return {nullptr, true};
  return {peer(slot, Wait::no)};
}

HostPort::Everybody Nic::everybody(Ticket& ticket) {
  Everybody all;
  for (Slot slot = 1; slot < host_.next_slot_; ++slot) {
    auto [one, undecided] = reach(slot, ticket);
    if (undecided) return {{}, true};
    if (one) all.peers.push_back(std::move(one));
  }
  return all;
}

std::uint64_t Nic::now_ns() { return host_.now_ns(); }

void Nic::wake_at(std::uint64_t deadline_ns) {
  const std::lock_guard lock(host_.mutex_);
  host_.deadlines_.emplace(deadline_ns, slot_);
}

void Nic::raise_channel(std::uint32_t channel) {
  const std::lock_guard lock(mutex_);
  ++raised_[channel];
}

bool Nic::fault_in(void* at, std::uint64_t length, Use use) {
  return !on_fault_in || on_fault_in(at, length, use);
}

void Nic::async_event(AsyncEvent event, QueuePair* qp, SharedReceiveQueue* srq) {
  const std::lock_guard lock(mutex_);
  async_.push_back({event, qp, srq});
}

int Nic::channel_events(std::uint32_t channel) {
  const std::lock_guard lock(mutex_);
  return std::exchange(raised_[channel], 0);
}

std::vector<AsyncReport> Nic::async_events() {
  const std::lock_guard lock(mutex_);
  return std::exchange(async_, {});
}

// ---- Host
// -----------------------------------------------------------------------------------------------------

Host::~Host() = default;

Nic& Host::add_nic() {
  const Slot slot = next_slot_++;
  auto nic = std::make_unique<Nic>(*this, slot);
  const std::lock_guard lock(mutex_);
  return *nics_.emplace_back(std::move(nic));
}

Nic* Host::living(Slot slot) {
  const std::lock_guard lock(mutex_);
  for (auto& nic : nics_)
    if (nic->slot() == slot) return nic.get();
  return nullptr;
}

void Host::kill(Nic& victim) {
  std::vector<Nic*> others;
  {
    const std::lock_guard lock(mutex_);
    for (auto& nic : nics_) {
      if (nic.get() == &victim)
        dead_.push_back(std::move(nic));
      else
        others.push_back(nic.get());
    }
    std::erase(nics_, nullptr);
  }
  for (Nic* nic : others) {
    const std::lock_guard lock(nic->mutex_);
    const auto known = nic->peers_.find(victim.slot());
    if (known == nic->peers_.end()) continue;
    const std::shared_ptr<MemoryPeer> peer = known->second;
    nic->peers_.erase(known);
    peer->died();
    post([nic, peer] { nic->adapter().peer_gone(*peer); });
  }
}

Nic& Host::replace(Nic& killed) {
  auto nic = std::make_unique<Nic>(*this, killed.slot());
  const std::lock_guard lock(mutex_);
  return *nics_.emplace_back(std::move(nic));
}

void Host::post(std::function<void()> message) {
  const std::lock_guard lock(mutex_);
  messages_.push_back(std::move(message));
}

bool Host::pump() {
  std::deque<std::function<void()>> now;
  {
    const std::lock_guard lock(mutex_);
    now.swap(messages_);
  }
  for (auto& message : now) message();
  return !now.empty();
}

void Host::advance(std::uint64_t ns) {
  const std::uint64_t end = now_ns_ + ns;
  for (;;) {
    Slot due = 0;
    {
      const std::lock_guard lock(mutex_);
      if (deadlines_.empty() || deadlines_.begin()->first > end) break;
      now_ns_ = std::max<std::uint64_t>(now_ns_, deadlines_.begin()->first);
      due = deadlines_.begin()->second;
      deadlines_.erase(deadlines_.begin());
    }
    if (Nic* nic = living(due)) nic->adapter().service();
  }
  now_ns_ = end;
}

// ---- Memory
// ---------------------------------------------------------------------------------------------------

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
// -------------------------------------------------------------------------------------------------

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
// --------------------------------------------------------------------------------------------------

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
