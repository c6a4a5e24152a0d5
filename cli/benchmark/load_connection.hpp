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
  LoadConnection(const LoadPlan& plan, LoadShare& share, std::shared_ptr<RequestRing> requests,
                 KeyNumbers& numbers, const Greeting& greeting, std::size_t index);

  // False: the share has failed.
  bool connect(client::Reactor& reactor);
  bool greeted() const { return awaited_greetings_ == 0; }
  bool wants_reconnect() const { return wants_reconnect_; }
  void reconnected() { wants_reconnect_ = false; }

  // Sends the next batch of a closed loop, if there is one.
  void send_batch(LoadShare::Time now);
  // Sends at most `most` requests of an open loop, of which so many are due; says how many it had places for.
  std::uint64_t send_due(std::uint64_t most, LoadShare::Time now);

  void received(std::span<const std::byte> bytes) override;
  void writable() override { flush(); }
  void ended(const client::Error& why) override { share_.fail(why); }

 private:
  void answered(std::uint64_t replies, LoadShare::Time now);
  void send(std::uint64_t count);
  void flush();

  const LoadPlan& plan_;
  LoadShare& share_;
  std::shared_ptr<RequestRing> requests_;  // of all the thread's connections, if they change nothing in it
  bool own_digits_;
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
