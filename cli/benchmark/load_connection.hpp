// A connection under load. It takes requests from its thread's share: in a closed loop a batch when the last
// batch is answered, in an open loop those that are due, as far as its pipeline has places.
//
// Its buffers live as long as it does: a reconnect allocates nothing of its own. Threading: its share's
// thread.
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
  // The requests that log in and prepare, and how many replies they get.
  struct Greeting {
    std::string bytes;
    std::uint64_t replies = 0;
  };

  // The `index`th of the thread's connections. Everything passed by reference outlives it.
  LoadConnection(const LoadPlan& plan, LoadShare& share, LoadTarget& target, KeyNumbers& numbers,
                 const Greeting& greeting, std::size_t index);

  // False: the share has failed.
  bool connect(client::Reactor& reactor);
  bool greeted() const { return awaited_greetings_ == 0; }
  bool wants_reconnect() const { return wants_reconnect_; }
  void reconnected() { wants_reconnect_ = false; }

  // Of a cluster: as soon as nothing is under way it is to go on there, and until then it sends nothing.
  void lead_to(LoadTarget& target) { next_target_ = &target; }
  bool wants_move() const { return next_target_ && awaited_ == 0 && unsent_.empty(); }
  // False: the share has failed. It may have to be greeted again.
  bool move(client::Reactor& reactor);

  // Sends the next batch of a closed loop, if there is one.
  void send_batch(LoadShare::Time now);
  // Sends at most `most` requests of an open loop, of which so many are due; says how many it had places for.
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
  bool waits_for_map_ = false;             // of a cluster: what its node has is not known
  std::shared_ptr<RequestRing> requests_;  // the target's, if the connection changes nothing in it
  bool own_digits_ = false;
  KeyNumbers& numbers_;  // of all the thread's connections
  const Greeting& greeting_;
  std::uint64_t awaited_greetings_ = 0;
  client::ReplyCounter counter_;
  std::uint64_t awaited_ = 0;
  std::size_t next_request_;                               // in the ring
  std::span<const std::byte> unsent_, unsent_from_front_;  // the second when the ring's end lies between
  LoadShare::Time sent_at_{};                              // of a closed loop's batch
  std::vector<LoadShare::Time> due_;                       // of an open loop's requests under way, a ring
  std::uint64_t answered_ = 0, sent_ = 0;                  // since due_'s first place
  bool wants_reconnect_ = false;
  std::unique_ptr<client::Connection> connection_;
};

}  // namespace weir::benchmark
