// How many TLS handshakes a listener has under way.
//
// A handshake costs the server 70 KiB and a signature (about a millisecond) before it knows anything about
// the client. So while every place is taken, a listener accepts no more clients; they wait in the kernel's
// queue, where they cost nothing and do not delay connected clients. Clients that take a place and then stay
// silent cannot keep the others out: a client that arrives while half of the places are taken has one second
// for its handshake instead of ten.
//
// Threading: any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

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
  bool crowded() const { return taken_ > most / 2; }
  std::size_t taken() const { return taken_; }

 private:
  std::atomic<std::size_t> taken_ = 0;
};

}  // namespace weir::transport
