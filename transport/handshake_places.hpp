// How many TLS handshakes a listener has under way.
//
// A handshake costs the server 70 KiB and a signature (about a millisecond) before it knows anything about
// the client. So while every place is taken, one of the handshakes under way leaves for the next client, the
// oldest of the source with the most (newcomers.hpp). Where none can leave, a listener accepts no more
// clients; they wait in the kernel's queue, where they cost nothing and do not delay connected clients. If
// the server makes none leave, a client that arrives while half of the places are taken has one second for
// its handshake instead of ten; where they leave, being slow is no fault.
//
// Threading: any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "transport/newcomers.hpp"

namespace weir::transport {

class HandshakePlaces : public std::enable_shared_from_this<HandshakePlaces> {
 public:
  static constexpr std::size_t most = 128;
  // How long a listener waits before it looks for room again.
  static constexpr std::chrono::milliseconds look_again{2};
  static constexpr std::chrono::seconds hurried{1};

  // One place, taken until it is destroyed or given back. It holds the places, so it may outlive the
  // listener.
  class Place {
   public:
    Place() = default;
    explicit Place(std::shared_ptr<HandshakePlaces> of) : of_(std::move(of)) { ++of_->taken_; }
    Place(Place&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(of_, other.of_);
      return *this;
    }
    ~Place() { give_back(); }
    void give_back() {
      if (of_) --std::exchange(of_, nullptr)->taken_;
    }

   private:
    std::shared_ptr<HandshakePlaces> of_;
  };

  Place take() { return Place(shared_from_this()); }
  bool full() const { return taken_ >= most; }
  // There is a place, or a handshake made room for one more.
  bool has_room() {
    return !full() || handshakes_->make_room(Newcomers::Lack::place) != Newcomers::Room::none;
  }
  const std::shared_ptr<Newcomers>& handshakes() const { return handshakes_; }
  bool crowded() const { return taken_ > most / 2; }
  std::size_t taken() const { return taken_; }

 private:
  std::atomic<std::size_t> taken_ = 0;
  const std::shared_ptr<Newcomers> handshakes_ = std::make_shared<Newcomers>();
};

}  // namespace weir::transport
