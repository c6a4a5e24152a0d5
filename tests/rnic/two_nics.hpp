// Two NICs on a host under the test's control (nic_host.hpp), and short helpers for registered
// memory, queue pairs with their CQs, posting and polling. The fixture connects one RC queue pair of
// each NIC with the other's.
//
// Threading: as in nic_host.hpp.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "nic_host.hpp"

namespace weir::rnic::test {

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
