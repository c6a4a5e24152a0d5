// Takes connections for a listening stream, on the service's thread, so that a peer's connect() ends before
// anybody calls accept(), as with TCP.
//
// Bounded: connections that are being made, and made ones that nobody took, together number at most `backlog`
// but not under `least_backlog`; further requests are rejected.
// Threading: all on the service's thread but the constructor, start(), stop() and take().
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "verbs/rsocket/cm_events.hpp"
#include "verbs/rsocket/stream_pipe.hpp"

namespace weir::rsocket {

class Listener {
 public:
  // Half made connections need a place too, and unlike TCP's nobody tries again by himself.
  static constexpr std::size_t least_backlog = 64, most_backlog = 4096;

  struct Connection {
    ChannelPtr channel;  // each needs the one before it, so it goes before it
    IdPtr id;
    std::unique_ptr<Pipe> pipe;
  };
  class Owner {
   public:
    virtual void accepted(Connection connection) = 0;
    // What connections begin with: of now, since they can be set on a listener at any time.
    virtual Options options_to_inherit() = 0;

   protected:
    ~Owner() = default;
  };

  Listener(rdma_event_channel* channel, int backlog, Owner& owner);
  int start();
  void stop();  // no callback runs after it
  void taken() { waiting_.fetch_sub(1); }

 private:
  struct Half {
    IdPtr id;
    std::unique_ptr<Pipe> pipe;
  };
  void serve();
  void request(CmEvent event);
  int prepare(Half& half, const Greeting& peers);
  void established(rdma_cm_id* id);

  rdma_event_channel* const channel_;
  const std::size_t backlog_;
  Owner& owner_;
  std::vector<Half> half_made_;
  std::atomic<std::size_t> waiting_ = 0;  // for accept()
};

}  // namespace weir::rsocket
