// Which connection leaves when a server is full and another client comes.
//
// A connection is a newcomer until its client has done what every real client does first (its call, its
// greeting, its request). Connecting costs a stranger nothing, so newcomers may not keep others out: when all
// places are taken, one of them leaves. It is the oldest of the source that has the most: a client that
// speaks at once is served however many silent ones come, and a source with few newcomers loses none to one
// with many. A newcomer whose client has to do several things is spared as it does them (waiting/shares.hpp).
//
// Threading: any thread; a Leave runs in the thread that calls make_room(), without the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "waiting/shares.hpp"

namespace weir::transport {

// Whom a connection is charged to: an IPv4 address, or the first 64 bits of an IPv6 address, of which one
// subscriber has 2^64. Other texts ("unix") are sources by themselves.
std::string source_of(std::string_view address);
// Of "ADDRESS:PORT", as connections name their peers.
std::string source_of_peer(std::string_view peer);

class Newcomers : public std::enable_shared_from_this<Newcomers> {
 public:
  enum class Room : std::uint8_t {
    none,  // there is no newcomer
    now,
    soon,  // another thread closes a connection
  };
  enum class Lack : std::uint8_t {
    place,
    descriptor,  // so the connection must be closed at once, without telling the client why
  };
  // Ends a connection, and returns `now` or `soon`.
  using Leave = std::function<Room(Lack)>;

  // A newcomer, until it is destroyed or settles.
  class Stay {
   public:
    Stay() = default;
    Stay(Stay&& other) noexcept : of_(std::move(other.of_)), number_(other.number_) {}
    Stay& operator=(Stay&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Stay() { settle(); }
    // It has come closer to settling. The user bounds how often.
    void move_on() const {
      if (of_) of_->move_on(number_);
    }
    void settle() {
      if (of_) std::exchange(of_, nullptr)->forget(number_);
    }

   private:
    friend class Newcomers;
    Stay(std::shared_ptr<Newcomers> of, std::uint64_t number) : of_(std::move(of)), number_(number) {}
    std::shared_ptr<Newcomers> of_;
    std::uint64_t number_ = 0;
  };

  Stay enter(std::string_view address, Leave leave);
  Room make_room(Lack of);
  std::size_t size() const;

 private:
  void move_on(std::uint64_t number);
  void forget(std::uint64_t number);

  mutable std::mutex mutex_;
  waiting::Shares<std::string, Leave> here_;
};

}  // namespace weir::transport
