// How many TLS handshakes a listener has under way.
//
// A handshake costs the server 70 KiB and a signature (about a millisecond) before it knows anything about
// the client. So a listener accepts no more clients while every place is taken; they wait in the kernel's
// queue, where they cost nothing and hold up nobody who is connected. Clients that accept a place and then
// say nothing cannot keep the others out: who comes while half of the places are taken has a second, not ten.
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

  // Taken until it is destroyed or given back. Holds the places, so that it may outlive the listener.
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
