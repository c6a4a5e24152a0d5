// The misdeeds of an attacker: a table of names and what each one does.
//
// A misdeed repeats until the attacker is killed, and counts its deeds through `did`. All random choices come
// from `random`.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string_view>

#include "tests/bystander/line.hpp"

namespace weir::bystander {

struct Attack {
  asio::io_context& io;
  Protocol protocol;
  std::string address;
  std::mt19937_64 random;
  std::function<void()> did;

  std::uint64_t below(std::uint64_t limit) { return random() % limit; }
  bool over(std::string_view word) const { return address.starts_with(word); }
};

// On which transports a misdeed is possible.
enum class Reach {
  everywhere,
  sockets_and_tls,  // not over plain RDMA, which has nothing of the kind
  tls,              // over tls://, where an attacker can come from an address of its own
  rdma,             // over rdma:// and rdma+tls://, below the protocol spoken there
  as_root,          // everywhere but over unix://, whose socket is in a folder that others cannot enter
  node,             // where the server is a gateway, one of whose nodes the attacker can be
  clock,            // where the server's clock can be set; that has no transport, and is done over unix://
};

struct Misdeed {
  std::string_view name;
  Reach reach;
  std::string_view what;  // for readers of the table
  // One of the two is set: a coroutine that uses lines, or a function that uses plain verbs or processes.
  asio::awaitable<void> (*with_lines)(Attack&) = nullptr;
  void (*alone)(Attack&) = nullptr;
  std::optional<Protocol> only_for = {};  // where only one of the two servers has what it needs

  bool possible(Protocol protocol, std::string_view address) const;
};

std::span<const Misdeed> misdeeds();
const Misdeed* misdeed_named(std::string_view name);

// Parts of the table, by file.
namespace processes {  // process_misdeeds.cpp
void stop_clients(Attack& attack);
void kill_clients(Attack& attack);
void kill_connecting(Attack& attack);
}  // namespace processes
namespace verbs {  // verbs_misdeeds.cpp
void lie_about_bytes(Attack& attack);
void never_announce(Attack& attack);
void announce_wild(Attack& attack);
void send_odd_control(Attack& attack);
void leave_cm_half_open(Attack& attack);
}  // namespace verbs
namespace wire {  // wire_misdeeds.cpp
void send_junk(Attack& attack);
void forge_connection_messages(Attack& attack);
}  // namespace wire
namespace nodes {  // node_misdeeds.cpp
// The environment variable that names the descriptor at which that node's connections arrive.
inline constexpr char listening_variable[] = "WEIR_BYSTANDER_NODE";
// The key whose slot that node has, and no other.
inline constexpr char key[] = "hello";
inline constexpr int slot = 866;
asio::awaitable<void> be_bad_node(Attack& attack);
}  // namespace nodes
namespace clocks {  // clock_misdeeds.cpp
// The environment variable that names the file with the server's error of the clock, in ns
// (stepped_clock.cpp).
inline constexpr char file_variable[] = "WEIR_BYSTANDER_CLOCK";
void step(Attack& attack);
}  // namespace clocks
namespace users {  // user_misdeeds.cpp
// The environment variable that names a folder that is the other user's own.
inline constexpr char folder_variable[] = "WEIR_BYSTANDER_OTHERS_FOLDER";
inline constexpr unsigned another_user = 1001;
asio::awaitable<void> be_another_user(Attack& attack);
}  // namespace users

}  // namespace weir::bystander
