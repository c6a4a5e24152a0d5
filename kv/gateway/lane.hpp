// The replies that one client waits for, in the order in which it asked.
//
// A place is taken for each request that is passed on; replies come from several nodes in any order and each
// leaves when those before it have left. A reply that is next leaves at once and is never kept.
//
// Bounded: at most `most_places`, and fewer while replies are large (about `most_bytes` of them), so that a
// client cannot make the gateway gather without end what it does not read. Threading: the server's one
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

  // Takes a reply that leaves.
  using Leave = std::function<void(std::string_view)>;
  Lane(Client* whose, Leave leave) : client(whose), leave_(std::move(leave)) {}

  // The client is gone: what still comes is dropped.
  void abandon() {
    leave_ = nullptr;
    places_.clear();
  }
  bool abandoned() const { return leave_ == nullptr; }

  bool idle() const { return places_.empty(); }
  std::size_t waiting() const { return places_.size(); }
  bool full() const { return places_.size() >= allowed(); }
  // How many requests may be on their way at once.
  std::size_t allowed() const { return std::clamp<std::size_t>(most_bytes / usual_bytes_, 1, most_places); }

  // A reply is awaited: its number. A muted one is dropped when it comes.
  std::uint64_t enter(bool muted) {
    places_.push_back({{}, muted, false});
    return first_ + places_.size() - 1;
  }
  void finish(std::uint64_t number, std::string_view reply);

  Client* const client;  // not looked at here

  // Kept by who uses the lane.
  enum class Resumes : std::uint8_t { no, when_fewer, when_idle };
  std::uint64_t map_version = 0;       // the slot map's when the first of these requests left
  std::uint16_t transaction_slot = 0;  // of what MULTI has queued
  std::int64_t held_since_ms = 0;      // the client's next request waits for a node; 0: it does not
  Resumes resumes = Resumes::no;       // the client goes on when the replies before it have left
  bool held = false;                   // the client is in the list of those that wait for a node
  bool ends = false;                   // the client is closed when the last of these replies has left
  // The client sends no more until these replies have left: they are those of one command that waits,
  // watches or subscribes.
  bool alone = false;
  bool subscribing = false;         // of SUBSCRIBE and its kind
  NodeLink* waiting_at = nullptr;   // the client's own, where its blocking command waits
  NodeLink* watching_at = nullptr;  // the client's own, which has its WATCHes
  std::uint16_t watched_slot = 0;   // of those
  bool watches = false;             // the node has confirmed one

 private:
  struct Place {
    std::string reply;
    bool muted;
    bool here;
  };

  Leave leave_;
  std::deque<Place> places_;
  std::uint64_t first_ = 0;       // the number of places_.front()
  std::size_t usual_bytes_ = 64;  // of a reply: the largest of late
};

}  // namespace weir::kv::cluster
