// A host for the NIC's tests: any number of Adapters in one process, with memory, time and wake-ups in the
// test's hand.
//
// Nothing here runs by itself: messages between NICs (kicks, faults, CQ events) wait until pump(), deadlines
// until advance(). So a test decides every interleaving, and none needs to sleep. Regions registered as
// `mapped` are reached through Peer::window (as shared memory is), the others through Peer::write/read (as
// private memory is).
//
// Threading: pump(), advance() and creation from the test's thread; the data path from any.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "rnic/adapter.hpp"

namespace weir::rnic::test {

class Host;

struct AsyncReport {
  AsyncEvent event;
  QueuePair* qp;
  SharedReceiveQueue* srq;
};

// One process: its segment, its table and its adapter.
class Nic final : public HostPort {
 public:
  Nic(Host& host, Slot slot);
  ~Nic() override;

  Adapter& adapter() { return *adapter_; }
  Slot slot() const { return slot_; }

  PeerPtr peer(Slot slot, Wait may_block) override;
  Reached reach(Slot slot, Ticket& ticket) override;
  Everybody everybody(Ticket& ticket) override;
  std::uint64_t now_ns() override;
  void wake_at(std::uint64_t deadline_ns) override;
  void raise_channel(std::uint32_t channel) override;
  void async_event(AsyncEvent, QueuePair*, SharedReceiveQueue*) override;
  bool fault_in(void* at, std::uint64_t length, Use) override;

  // Whether that process is connected, for reach(); by default all are. `ticket` is 1 while it is not.
  std::function<bool(Slot)> on_reach;
  // On-demand memory that is not there; by default all of it is.
  std::function<bool(void* at, std::uint64_t length, Use)> on_fault_in;

  int channel_events(std::uint32_t channel);  // raised since the last call
  std::vector<AsyncReport> async_events();    // reported since the last call

 private:
  friend class Host;
  friend class MemoryPeer;

  Host& host_;
  Slot slot_;
  std::byte* segment_memory_;
  std::byte* table_memory_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<Adapter> adapter_;
  std::mutex mutex_;
  std::map<Slot, std::shared_ptr<class MemoryPeer>> peers_;
  std::map<std::uint32_t, int> raised_;
  std::vector<AsyncReport> async_;
};

class Host {
 public:
  Host() = default;
  ~Host();

  Nic& add_nic();
  // What a SIGKILL leaves: the process answers no more, its memory keeps its last contents; the others are
  // told when the messages are pumped.
  void kill(Nic&);
  // The next process moves into the slot of a killed one.
  Nic& replace(Nic& killed);

  // Delivers what NICs told each other; true if there was something.
  bool pump();
  // Moves the clock, running the deadlines on the way.
  void advance(std::uint64_t ns);
  std::uint64_t now_ns() const { return now_ns_; }

  // Called before a copy through Peer::write or Peer::read; may block. Anything but `done` is its outcome
  // instead.
  std::function<Peer::Transfer()> on_copy;

 private:
  friend class Nic;
  friend class MemoryPeer;
  void post(std::function<void()>);
  Nic* living(Slot slot);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Nic>> nics_;
  std::vector<std::unique_ptr<Nic>> dead_;
  std::deque<std::function<void()>> messages_;
  std::multimap<std::uint64_t, Slot> deadlines_;
  std::atomic<std::uint64_t> now_ns_{1'000'000'000};
  Slot next_slot_ = 1;
};

// Whether neighbours reach a region by mapping it too, or through the kernel.
enum class Reach : bool { copied, mapped };

inline constexpr std::uint32_t pd = 7;
inline constexpr std::uint32_t all_access =
    access::local_write | access::remote_write | access::remote_read | access::remote_atomic;

// Registered memory that knows its keys.
class Memory {
 public:
  Memory(Nic& nic, std::size_t bytes, std::uint32_t rights = all_access, Reach reach = Reach::copied,
         std::uint32_t domain = pd);

  std::byte* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  std::uint64_t addr() const { return reinterpret_cast<std::uint64_t>(bytes_.data()); }
  std::uint32_t key() const { return key_; }
  Sge sge(std::size_t offset, std::size_t length) const {
    return {addr() + offset, static_cast<std::uint32_t>(length), key_};
  }
  Sge all() const { return sge(0, size()); }
  void fill(std::uint32_t seed);
  void clear() { std::memset(bytes_.data(), 0, bytes_.size()); }
  std::vector<std::byte> part(std::size_t offset, std::size_t length) const {
    return {bytes_.begin() + static_cast<std::ptrdiff_t>(offset),
            bytes_.begin() + static_cast<std::ptrdiff_t>(offset + length)};
  }
  void deregister() { nic_->adapter().deregister(key_); }

 private:
  Nic* nic_;
  std::vector<std::byte> bytes_;
  std::uint32_t key_ = 0;
};

// One queue pair with its CQs, posting and polling in one line each.
struct EndpointOptions {
  QpType type = QpType::rc;
  QpCapabilities caps{
      .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4, .max_inline = 256};
  bool signal_all = false;
  std::uint32_t domain = pd;
  std::uint32_t qp_access = access::remote_write | access::remote_read | access::remote_atomic;
  std::uint8_t timeout = 14, retry_cnt = 7, rnr_retry = 7, min_rnr_timer = 12;
  std::uint8_t max_rd_atomic = 4, max_dest_rd_atomic = 4;
  std::uint32_t qkey = 0x1234;
  SharedReceiveQueue* srq = nullptr;
  CompletionQueue* cq = nullptr;  // for both directions; nullptr: one of its own for each
};

class Endpoint {
 public:
  explicit Endpoint(Nic& nic, const EndpointOptions& = {});
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  Nic& nic() { return nic_; }
  QueuePair& qp() { return *qp_; }
  Qpn qpn() const { return qp_->qpn(); }
  CompletionQueue& send_cq() { return *send_cq_; }
  CompletionQueue& recv_cq() { return *recv_cq_; }
  void destroy_qp();

  bool modify(QpState to) { return qp_->modify(to, attributes_); }
  void modify(QpState to, const QpAttributes& attributes) { qp_->modify(to, attributes); }
  void to_rtr(Qpn destination);
  void to_rts(Qpn destination);
  QpAttributes& attributes() { return attributes_; }

  PostResult post(const SendRequest& request, std::vector<Sge> sges);
  PostResult post_inline(const SendRequest& request, std::span<const std::byte> payload);
  PostResult send(std::uint64_t id, const Sge& sge, std::uint32_t flags = send_flag::signaled);
  PostResult write(std::uint64_t id, const Sge& from, std::uint64_t to, std::uint32_t rkey,
                   std::uint32_t flags = send_flag::signaled);
  PostResult read(std::uint64_t id, const Sge& into, std::uint64_t from, std::uint32_t rkey);
  PostResult recv(std::uint64_t id, std::vector<Sge> sges = {});

  // One completion, if there is one.
  std::optional<WorkCompletion> poll_send() { return poll(*send_cq_); }
  std::optional<WorkCompletion> poll_recv() { return poll(*recv_cq_); }
  static std::optional<WorkCompletion> poll(CompletionQueue& cq);
  static std::vector<WorkCompletion> drain(CompletionQueue& cq);

 private:
  Nic& nic_;
  QpAttributes attributes_;
  CompletionQueue* send_cq_;
  CompletionQueue* recv_cq_;
  bool owns_cqs_;
  QueuePair* qp_;
};

void connect(Endpoint& a, Endpoint& b);

// Two NICs and one connected RC queue pair on each.
class TwoNics : public testing::Test {
 protected:
  TwoNics() : a_nic(host.add_nic()), b_nic(host.add_nic()) {}
  void connect_pair(const EndpointOptions& options = {}) { connect_pair(options, options); }
  void connect_pair(const EndpointOptions& a_options, const EndpointOptions& b_options);
  // Lets everything that can happen without time passing happen.
  void settle() {
    while (host.pump()) {
    }
  }

  Host host;
  Nic& a_nic;
  Nic& b_nic;
  std::unique_ptr<Endpoint> a, b;
};

// gtest prints these in failures.
testing::AssertionResult completed(const std::optional<WorkCompletion>& wc, std::uint64_t id,
                                   WcStatus status = WcStatus::success);

}  // namespace weir::rnic::test
