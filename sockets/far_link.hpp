// A link to an end on another host: a queue pair of rdma_cm, a ring that the peer writes into, and messages
// that carry words (far_messages.hpp).
//
// Bytes are copied into `sent_`, a duplicate of the peer's ring, and written from there. What the peer has
// not read stays in it, so retransmission and hand-back need no other memory. A write that changes only
// `produced` is one WRITE WITH IMMEDIATE; otherwise the words follow in a SEND. Words from the peer go into
// their mirror in the table, in the order that carrier.hpp needs; each number is checked to go forwards. A
// message that makes no sense ends the link, but no other connection.
//
// `asked_` numbers the latest message with words that decide the carrier; `heard_` is the number that the
// peer has acknowledged. settled() compares the two. `placed_` numbers the latest message that moved a
// byte between carriers. Every queue has a constant length. If the send queue is full, a later message
// carries the words (`owes_`).
//
// Threading: make(), greet() and destruction in the service thread; the rest in any thread, under `mutex_`.
// Never used in a forked child.
#pragma once

#include <rdma/rdma_cma.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "sockets/calls/held_signals.hpp"
#include "sockets/far_arrivals.hpp"
#include "sockets/far_messages.hpp"
#include "sockets/link.hpp"
#include "sockets/table.hpp"

namespace weir::sockets {

class FarLink final : public Link, private FarArrivals::Receiver {
 public:
  // Takes `id` over; its address is resolved, or it is a request. Null: no memory or no room on the
  // device; `id` is then unchanged.
  static std::unique_ptr<FarLink> make(Table& table, const Table::Place& place, rdma_cm_id* id,
                                       FarArrivals& arrivals, std::uint32_t ring_bytes);
  ~FarLink() override;

  bool greet(const Conversation& mine);
  bool greeted() const { return greeted_.load(); }
  const std::optional<FarHello>& greeting() const { return greeting_; }  // the peer's, once greeted()
  bool accept_greeting();  // the peer is the one we meant: now we can write to it. False: no memory
  void peer_left();        // the peer has disconnected the queue pairs

  bool write(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes, std::uint64_t place,
             bool keep_cpu) override;
  bool read(void* into, std::size_t bytes, std::uint64_t place) override;
  const std::byte* ring() const override { return ring_; }
  bool is_far() const override { return true; }
  bool takes_more() const override;
  bool all_arrived() override;
  void tell() override;
  void look() override;
  FarArrivals* arrivals() override { return &arrivals_; }
  bool placed() const override { return !owes_.load() && heard_.load() >= placed_.load(); }
  bool settled() const override { return !owes_.load() && heard_.load() >= asked_.load(); }
  bool lost() const override { return lost_.load(); }
  std::chrono::nanoseconds unanswered() override;
  void stop() override;

 private:
  FarLink(Table& table, const Table::Place& place, rdma_cm_id* id, FarArrivals& arrivals,
          std::uint32_t ring_bytes)
      : table_(table),
        mine_(place.mine()),
        peer_(place.peer()),
        arrivals_(arrivals),
        id_(id),
        ring_bytes_(ring_bytes) {}
  bool prepare();
  bool post_receive(std::uint64_t slot);
  FarWords words() const;
  bool is_due(const FarWords& now) const;
  void publish(bool answers);
  bool post(ibv_send_wr& request);
  void reap();
  bool take(const ibv_wc& completion) override;
  void answer() override;
  bool understand(const ibv_wc& completion);
  bool take_words(const FarWords& words);
  void lose();

  static constexpr std::uint32_t receives = FarArrivals::receives_a_link, sends = 128, kept_for_words = 16;

  Table& table_;
  Side& mine_;
  Side& peer_;
  FarArrivals& arrivals_;
  rdma_cm_id* id_;
  const std::uint32_t ring_bytes_;
  bool owns_id_ = false;

  SectionMutex mutex_;
  std::byte* ring_ = nullptr;  // followed by the receive slots
  std::size_t mapped_bytes_ = 0;
  std::byte* sent_ = nullptr;
  std::uint64_t number_ = 0;  // the link's number among arrivals; 0: none
  struct News {
    bool any = false;
    bool asks = false;     // asks for an answer
    bool service = false;  // concerns the service thread
  } news_;
  ibv_cq* send_cq_ = nullptr;
  struct Registered {
    ibv_pd* pd = nullptr;  // this link's own: what its peer may write answers through this queue pair only
    ibv_mr *ring = nullptr, *slots = nullptr, *sent = nullptr;
  } registered_;
  std::optional<FarHello> greeting_;
  FarWords sent_words_;                        // the peer's words once all messages have arrived
  std::uint64_t peers_number_ = 0;             // number of the latest words received
  std::atomic<std::uint32_t> outstanding_{0};  // requests without a completion
  std::atomic<std::uint64_t> asked_{0}, placed_{0}, heard_{0};
  std::atomic<bool> owes_{false}, lost_{false}, greeted_{false};
  bool stopped_ = false;
  std::chrono::steady_clock::time_point answered_{};  // the peer's NIC last acknowledged something, or all
};

}  // namespace weir::sockets
