// The replies that one client waits for, in the order of its requests.
//
// Each request that is passed on takes a place. Replies come from several nodes in any order, and each is
// delivered once those before it are. The next reply in order is delivered at once, without a copy.
//
// Bounded: at most `most_places` requests, and fewer while replies are large (about `most_bytes` in all), so
// a client that does not read cannot make the gateway buffer without limit. Threading: the server's one
// thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace weir::kv {
class Client;
}

namespace weir::kv::cluster {

class NodeLink;

class Lane {
 public:
  static constexpr std::size_t most_places = 1024;
  static constexpr std::size_t most_bytes = std::size_t{8} << 20;

  // Called with each reply that is next in order.
  using Leave = std::function<void(std::string_view)>;
  Lane(Client* whose, Leave leave) : client(whose), leave_(std::move(leave)) {}

  // The client is gone: replies that still arrive are dropped.
  void abandon() {
    leave_ = nullptr;
    places_.clear();
  }
  bool abandoned() const { return leave_ == nullptr; }

  bool idle() const { return places_.empty(); }
  std::size_t waiting() const { return places_.size(); }
  bool full() const { return places_.size() >= allowed(); }
  // How many requests may be in flight at once.
  std::size_t allowed() const { return std::clamp<std::size_t>(most_bytes / usual_bytes_, 1, most_places); }

  // Takes a place for a reply and returns its number. A muted reply is dropped when it arrives.
  std::uint64_t enter(bool muted) {
    places_.push_back({{}, muted, false});
    return first_ + places_.size() - 1;
  }
  void finish(std::uint64_t number, std::string_view reply);

  // Where the client's writes went, as far as WAIT must know: a node confirms its own writes only.
  class Writes {
   public:
    // A link to a node has answered a write, or may have carried one when it ended.
    void note(std::uint64_t link) {
      several_ = !confirmed_ && last_ != 0 && (several_ || last_ != link);
      last_ = link;
      confirmed_ = false;
    }
    // The client asks whether replicas have them: what it writes from now on counts anew.
    void asked() { confirmed_ = true; }
    std::uint64_t last() const { return last_; }  // the link of the last one; 0: there was none
    bool went_to_several() const { return several_; }

   private:
    std::uint64_t last_ = 0;
    bool several_ = false;
    bool confirmed_ = false;
  };

  Client* const client;  // the lane itself never uses it

  // State that the router keeps for the client:
  enum class Resumes : std::uint8_t { no, when_fewer, when_idle };
  std::uint64_t map_version = 0;       // the slot map's, when the first request in flight left
  std::uint16_t transaction_slot = 0;  // the slot of the commands queued since MULTI
  std::int64_t held_since_ms = 0;      // when the next request began to wait for a node; 0: it does not
  Resumes resumes = Resumes::no;       // when the client may continue after earlier replies
  bool held = false;                   // the client is in the list of those that wait for a node
  bool ends = false;                   // close the client once all these replies are delivered
  // The replies in flight belong to one command that waits, watches or subscribes; the client sends no more
  // until they are delivered.
  bool alone = false;
  bool subscribing = false;         // that command is SUBSCRIBE or a variant
  NodeLink* waiting_at = nullptr;   // the client's own link on which its blocking command waits
  NodeLink* watching_at = nullptr;  // the client's own link that holds its WATCHes
  std::uint16_t watched_slot = 0;   // the slot of the watched keys
  bool watches = false;             // the node has confirmed at least one WATCH
  Writes writes;

 private:
  struct Place {
    std::string reply;
    bool muted;
    bool here;
  };

  Leave leave_;
  std::deque<Place> places_;
  std::uint64_t first_ = 0;       // number of places_.front()
  std::size_t usual_bytes_ = 64;  // the size of recent large replies; decays
};

}  // namespace weir::kv::cluster
