// How many TLS handshakes a listener has under way.
//
// A handshake costs the server 70 KiB and a signature (about a millisecond) before it knows anything about
// the client. So while every place is taken, one of the handshakes under way leaves for the next client, of
// the source with the most of them: the oldest of those whose client has sent no whole message yet, or the
// one that got its last message longest ago (newcomers.hpp, handshake_progress.hpp). Each message of a
// handshake comes once, and the handshake has a deadline, so sending a byte now and then spares nobody.
//
// A listener lets at most one leave before its loop has looked for input again: what a client has sent and
// the server has not read yet would not count, and a batch of newcomers would push out those that are about
// to finish. Where none can leave, a listener accepts no more clients; they wait in the kernel's queue, where
// they cost nothing and do not delay connected clients.
//
// Threading: any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "transport/newcomers.hpp"

namespace weir::transport {

class HandshakePlaces : public std::enable_shared_from_this<HandshakePlaces> {
 public:
  static constexpr std::size_t most = 128;
  // How long a listener waits before it looks for room again.
  static constexpr std::chrono::milliseconds look_again{2};

  // One place, taken until it is destroyed or given back. It holds the places, so it may outlive the
  // listener.
  class Place {
   public:
    Place() = default;
    explicit Place(std::shared_ptr<HandshakePlaces> of) : of_(std::move(of)) { ++of_->taken_; }
    Place(Place&& other) noexcept : of_(std::exchange(other.of_, nullptr)), stay_(std::move(other.stay_)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(stay_, other.stay_);
      return *this;
    }
    ~Place() { give_back(); }
    // From now on the handshake may have to leave for another client's. Without a place, never.
    void may_leave(std::string_view address, Newcomers::Leave leave) {
      if (of_) stay_ = of_->handshakes_->enter(address, std::move(leave));
    }
    // The client has sent another whole message.
    void move_on() const { stay_.move_on(); }
    void give_back() {
      stay_.settle();
      if (of_) --std::exchange(of_, nullptr)->taken_;
    }

   private:
    std::shared_ptr<HandshakePlaces> of_;
    Newcomers::Stay stay_;
  };

  Place take() { return Place(shared_from_this()); }
  bool full() const { return taken_ >= most; }
  // There is a place, or a handshake made room for one more.
  bool has_room() {
    return !full() || handshakes_->make_room(Newcomers::Lack::place) != Newcomers::Room::none;
  }
  const std::shared_ptr<Newcomers>& handshakes() const { return handshakes_; }
  std::size_t taken() const { return taken_; }

 private:
  std::atomic<std::size_t> taken_ = 0;
  const std::shared_ptr<Newcomers> handshakes_ = std::make_shared<Newcomers>();
};

}  // namespace weir::transport
