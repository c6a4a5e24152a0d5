// Two NICs in a bottle: the requesters and responders of one connection, connected by a network that loses,
// duplicates, delays and corrupts packets, under a clock that only the test moves.
//
// Beside them a model performs every operation exactly once, in order, when it is posted. The ends must see
// what the model saw: memory, messages and their completions, and the results of atomics.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "rnic/packet/requester.hpp"
#include "rnic/packet/responder.hpp"
#include "wire/icrc.hpp"

namespace weir::rnic::packet::test {

inline constexpr std::size_t exposed_bytes = 192 * 1024, constant_bytes = 96 * 1024;  // never changed
// The own memory: what is sent, then where answers go.
inline constexpr std::size_t memory_bytes = 192 * 1024, answers_at = 96 * 1024;
inline constexpr std::uint32_t longest = 70'000;
inline constexpr std::uint32_t exposed_key = 0x1234;
inline constexpr std::uint64_t exposed_at = 0x7000'0000'0000;
inline constexpr std::uint32_t receive_bytes = 80 * 1024;
inline constexpr std::uint64_t microsecond = 1'000, millisecond = 1'000'000;

struct Operation {
  SendOpcode opcode = SendOpcode::send;
  std::uint32_t length = 0;
  std::uint64_t local = 0, remote = 0;  // offsets into the own memory, and into the exposed one of the other
  bool fence = false, solicited = false, in_pieces = false;
  std::uint32_t imm = 0;
  std::uint64_t compare_add = 0, swap = 0;
  std::uint32_t rkey = exposed_key;
  std::uint32_t srqn = 0;  // XRC: each SRQ has a key of its own for the exposed memory (End::key_of)
  bool signaled = true;
};

struct Options {
  wire::Service service = wire::Service::rc;
  std::uint32_t path_mtu = 1024;
  Psn first_psn{0xfffff0};
  std::uint8_t timeout = 14, retry_cnt = 7, rnr_retry = 7, min_rnr_timer = 12;
  std::uint8_t max_rd_atomic = 4;
  bool ipv4 = true;
  std::uint64_t one_way_ns = 10 * microsecond;
  std::uint32_t receives = 1'000'000;  // posted from the beginning
};

struct Fate {
  bool dropped = false, corrupted = false;
  std::uint32_t copies = 1;
  std::uint64_t delayed_ns = 0;
};

struct Message {
  std::vector<std::byte> data;
  std::optional<std::uint32_t> imm_be, invalidate;
  bool solicited = false;
  std::uint64_t byte_len = 0;
  std::uint32_t srqn = 0;
};

class End final : public SendSource, public Target {
 public:
  explicit End(const Options&);

  // Posts it, and lets the model do it to the other end.
  void post(End& other, const Operation&);
  std::vector<std::string> wrong;  // what differed from the model

  std::vector<WcStatus> completions;
  std::uint32_t receives_left;
  std::size_t messages = 0;   // that completed
  std::uint32_t refused = 0;  // nak_* of this target
  std::function<void()> on_rnr;
  std::vector<std::byte> memory, exposed, model_exposed;
  std::vector<Operation> operations;
  std::deque<Message> expected_messages;
  Window window;
  std::unique_ptr<Requester> requester;
  std::unique_ptr<Responder> responder;

  // SendSource
  std::uint32_t posted() const override { return static_cast<std::uint32_t>(operations.size()); }
  WcStatus look_up(std::uint32_t wqe, WorkRequest&, Gather&) override;
  WcStatus execute_local(std::uint32_t) override { return WcStatus::success; }
  bool scatter(std::uint32_t, const Gather&, std::uint64_t offset, std::span<const std::byte>) override;
  void complete(std::uint32_t wqe, WcStatus, std::uint64_t bytes) override;

  // Target
  Verdict select(std::uint32_t srqn) override;
  Verdict begin_send() override;
  Verdict begin_write(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) override;
  Verdict append(std::uint64_t offset, std::span<const std::byte>) override;
  Verdict finish(const Ending&) override;
  Verdict check_read(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) override;
  Verdict read(std::uint32_t srqn, std::uint64_t addr, std::uint32_t rkey, std::uint32_t length,
               std::span<iovec> room, std::uint32_t& used) override;
  Verdict atomic(SendOpcode, std::uint64_t addr, std::uint32_t rkey, std::uint64_t compare_add,
                 std::uint64_t swap, std::uint64_t& before) override;
  Verdict atomic_write(std::uint64_t addr, std::uint32_t rkey,
                       std::span<const std::byte, atomic_bytes>) override;
  void refuse(Verdict) override { ++refused; }

 private:
  static std::uint32_t key_of(std::uint32_t srqn) { return exposed_key + srqn; }
  Verdict reachable(std::uint32_t srqn, std::uint64_t addr, std::uint32_t rkey, std::uint64_t length);
  Verdict take_receive();
  std::vector<std::vector<std::byte>> expected_fetches_;  // by WQE
  std::vector<std::byte> landing_;
  std::byte* writing_ = nullptr;  // of a WRITE
  std::uint64_t begun_bytes_ = 0;
  bool sending_ = false;
  const wire::Service service_;
  std::uint32_t selected_ = 0;  // the SRQ
};

// A packet from BTH to ICRC.
struct OnTheWire {
  std::uint64_t arrives_ns = 0;
  std::uint64_t number = 0;  // in the order of arrival times that are equal
  std::uint32_t to = 0;
  bool corrupted = false;
  std::vector<std::byte> bytes;
  friend bool operator>(const OnTheWire& a, const OnTheWire& b) {
    return std::pair(a.arrives_ns, a.number) > std::pair(b.arrives_ns, b.number);
  }
};

class Bottle {
 public:
  explicit Bottle(const Options&, std::uint32_t seed = 1);

  // The fate of the n-th packet sent (from 0, both directions together).
  std::function<Fate(std::uint64_t n)> fate = [](std::uint64_t) { return Fate{}; };
  // Sees every packet that is sent.
  std::function<void(std::uint32_t from, const wire::Packet&, std::span<const std::byte>)> watch;

  // A third end that knows addresses and queue pair numbers: its packet arrives at once and intact.
  void forge(std::uint32_t to, const wire::Packet&);

  void at(std::uint64_t ns, std::function<void()> act) { acts_.emplace(ns, std::move(act)); }
  // Until nothing is outstanding and nothing can happen any more. False: that takes longer than `longest_ns`.
  bool run(std::uint64_t longest_ns = 100'000 * millisecond);
  void pump();  // lets both ends send what they may
  // Completions, memory and messages against the model; "" if they agree.
  std::string differences();

  std::uint64_t now_ns = 1;
  std::uint64_t packets = 0;
  std::array<std::unique_ptr<End>, 2> ends;
  const Options options;

 private:
  void pump(std::uint32_t end);
  void send(std::uint32_t from, const Outgoing&);
  void deliver(const OnTheWire&);
  void receive(std::uint32_t to, const wire::Packet&);
  const wire::IcrcRoute& route(std::uint32_t from) const { return routes_[from]; }

  std::mt19937_64 random_;
  std::array<wire::IcrcRoute, 2> routes_;
  std::array<std::uint16_t, 2> ids_{100, 60000};
  std::array<wire::SenderIds, 2> senders_;
  std::priority_queue<OnTheWire, std::vector<OnTheWire>, std::greater<>> on_the_wire_;
  std::multimap<std::uint64_t, std::function<void()>> acts_;
};

// Operations of all kinds, with sizes around packet boundaries.
std::vector<Operation> random_operations(std::mt19937_64&, std::size_t count, std::uint32_t path_mtu);

// XRC: for one SRQ and another in turn.
void spread_over_srqs(std::vector<Operation>&);

// Everything about one connection from one number; asserts that model and ends agree.
void play_seed(std::uint64_t seed);

}  // namespace weir::rnic::packet::test
