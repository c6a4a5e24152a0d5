// A connection under load. It takes requests from its thread's share: in a closed loop a batch once the last
// batch is answered, and in an open loop the requests that are due, if its pipeline has room.
//
// Its buffers live as long as it does, so a reconnect allocates nothing here. Threading:
// the thread of its share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cli/benchmark/key_numbers.hpp"
#include "cli/benchmark/load_plan.hpp"
#include "cli/benchmark/load_share.hpp"
#include "cli/benchmark/load_targets.hpp"
#include "cli/benchmark/request_ring.hpp"
#include "cli/client/connection.hpp"
#include "cli/client/reply_count.hpp"

namespace weir::benchmark {

class LoadConnection final : public client::ConnectionEvents {
 public:
  // The requests that log in and prepare, and the number of their replies.
  struct Greeting {
    std::string bytes;
    std::uint64_t replies = 0;
  };

  // Connection number `index` of the thread. Everything passed by reference must outlive it.
  LoadConnection(const LoadPlan& plan, LoadShare& share, LoadTarget& target, KeyNumbers& numbers,
                 const Greeting& greeting, std::size_t index);

  // False: the share has failed.
  bool connect(client::Reactor& reactor);
  bool greeted() const { return awaited_greetings_ == 0; }
  bool wants_reconnect() const { return wants_reconnect_; }
  void reconnected() { wants_reconnect_ = false; }

  // For a cluster: it continues at `target` once nothing is under way, and sends nothing until then.
  void lead_to(LoadTarget& target) { next_target_ = &target; }
  bool wants_move() const { return next_target_ && awaited_ == 0 && unsent_.empty(); }
  // False: the share has failed. The connection may need a new greeting.
  bool move(client::Reactor& reactor);

  // Sends the next batch of a closed loop, if there is one.
  void send_batch(LoadShare::Time now);
  // Sends at most `most` due requests of an open loop; returns how many it had room for.
  std::uint64_t send_due(std::uint64_t most, LoadShare::Time now);

  void received(std::span<const std::byte> bytes) override;
  void writable() override { flush(); }
  void ended(const client::Error& why) override { share_.fail(why); }

 private:
  void answered(std::uint64_t replies, std::uint64_t redirected, LoadShare::Time now);
  void take_requests();
  void send(std::uint64_t count);
  void flush();

  const LoadPlan& plan_;
  LoadShare& share_;
  LoadTarget* target_;
  LoadTarget* next_target_ = nullptr;
  bool waits_for_map_ = false;             // for a cluster: its node's slots are not known yet
  std::shared_ptr<RequestRing> requests_;  // the target's, unless the connection changes requests
  bool own_digits_ = false;
  KeyNumbers& numbers_;  // shared by all connections of the thread
  const Greeting& greeting_;
  std::uint64_t awaited_greetings_ = 0;
  client::ReplyCounter counter_;
  std::uint64_t awaited_ = 0;
  std::size_t next_request_;                               // in the ring
  std::span<const std::byte> unsent_, unsent_from_front_;  // the second one after the end of the ring
  LoadShare::Time sent_at_{};                              // of a closed loop's batch
  std::vector<LoadShare::Time> due_;                       // of an open loop's outstanding requests; a ring
  std::uint64_t answered_ = 0, sent_ = 0;                  // since the first place of due_
  bool wants_reconnect_ = false;
  std::unique_ptr<client::Connection> connection_;
};

}  // namespace weir::benchmark
