// Clients that hold a seat and have not shown yet that they are clients: they have not given the password,
// or, where none is needed, have asked for nothing.
//
// Connecting costs nothing, so they must not keep others out. When all seats are taken and another client
// comes, one of them leaves, by the rule of waiting/shares.hpp: of the address with the most, one that has
// sent nothing before one that has sent something, and the oldest of these.
//
// Every client lacks the password from connecting until AUTH, and again after RESET. Its time is limited
// (auth-timeout), and if such clients hold half of all seats, one of them leaves even while others are free.
// Client::charge() limits their memory.
//
// Threading: the server's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "kv/settings/settings.hpp"
#include "waiting/shares.hpp"

namespace weir::kv {

class Client;

class Strangers {
 public:
  // Closes a client, which then leaves; the reason is for the log.
  using Close = std::function<void(Client&, const std::string& why)>;
  enum class Lacks : std::uint8_t { password, request };

  Strangers(const Settings& settings, Close close) : settings_(settings), close_(std::move(close)) {}

  // Returns the number under which it is found among those that lack the same; never 0. `peer` is its address
  // and port.
  std::uint64_t enter(Client& client, Lacks what, std::string_view peer, std::int64_t now_ms);
  void leave(Lacks what, std::uint64_t number) { those(what).leave(number); }
  // It has sent its first bytes.
  void sent(Lacks what, std::uint64_t number) { those(what).move_on(number); }

  // Those that lack the password.
  std::size_t size() const { return unknown_.size(); }
  // The deadline by which the oldest of these must give it; 0: nobody is waiting to, or there is no limit.
  std::int64_t next_deadline_ms() const;
  void close_late(std::int64_t now_ms);
  // Closes one of these after the other while they hold more than half of all seats.
  void make_room(std::int64_t now_ms);
  // Closes one for a client that finds all seats taken. False if nobody can be closed.
  bool make_seat();

  // The bytes held by all that lack the password, and their limit.
  std::size_t bytes = 0;
  std::size_t most_bytes = 64u << 20;

 private:
  struct Stranger {
    Client* client;
    std::int64_t since_ms;
  };
  using Shares = waiting::Shares<std::string, Stranger>;

  Shares& those(Lacks what) { return what == Lacks::password ? unknown_ : silent_; }

  const Settings& settings_;
  const Close close_;
  Shares unknown_, silent_;
};

}  // namespace weir::kv
