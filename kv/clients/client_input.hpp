// What a client sent and the server has not executed: the request that is being parsed, and what came behind
// it.
//
// Requests are taken in rounds: begin() with what has just arrived, then parse() and next() as long as the
// client may go on, then end(), which keeps the rest. Bytes of an incomplete request stay in `pending_`,
// which starts at that request's first byte. A client that sends whole requests and waits for replies keeps
// none.
//
// How much is kept is the owner's to limit. Threading: the server's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kv/resp/request.hpp"

namespace weir::kv {

class ClientInput {
 public:
  // Why the next request is not executed now, though the client could go on otherwise.
  enum class Waits : std::uint8_t {
    no,
    for_output,  // too much waits to be sent
    for_turn,    // it was parsed and is offered again: CLIENT PAUSE, or a gateway waits for replies
    for_others   // the client's turn is over: see ClientTurns
  };
  Waits waits() const { return waits_; }
  void wait(Waits why) { waits_ = why; }

  // One round. `fresh` arrived behind everything else. A request that waited for its turn is offered again.
  void begin(std::string_view fresh);
  bool in_round() const { return in_round_; }
  bool any_left() const { return !left_.empty(); }
  RequestParser::Status parse(const RequestParser::Limits& limits) { return parser_.parse(left_, limits); }
  Arguments arguments() const { return parser_.arguments(); }
  const std::string& error() const { return parser_.error(); }
  void next() {
    left_.remove_prefix(parser_.consumed());
    parser_.next();
  }
  // After an error: nothing that is left can be understood.
  void give_up_request() { parser_.next(); }
  // What is kept: as much as the unfinished request needs, or also whole requests that must wait.
  enum class Keep : std::uint8_t { unfinished, everything, nothing };
  void end(Keep keep);

  // The rest of a large argument is received straight into its block (RequestParser::wanted()). take_wanted()
  // moves it from the front of `bytes` instead.
  std::span<char> wanted() { return parser_.wanted(); }
  void filled(std::size_t bytes) { parser_.filled(bytes); }
  void take_wanted(std::string_view& bytes);

  // Behind the request that is being executed, or in front of the next one.
  std::size_t pending_bytes() const { return pending_.size(); }
  // With what the parser holds.
  std::size_t bytes() const { return pending_.size() + parser_.held_bytes(); }
  // The same; while a request is executed, that one and what came after it.
  std::size_t unexecuted_bytes() const { return in_round_ ? left_.size() + parser_.held_bytes() : bytes(); }
  std::size_t free_bytes() const { return pending_.capacity() - pending_.size(); }
  // Memory of a request's arguments besides their bytes.
  std::size_t argument_bytes() const { return parser_.list_bytes(); }
  std::size_t memory() const { return pending_.capacity() + parser_.held_bytes() + parser_.list_bytes(); }

 private:
  RequestParser parser_;
  std::string pending_;
  std::string_view left_;  // of a round: in `pending_`, or what arrived if nothing was pending
  bool in_round_ = false;
  Waits waits_ = Waits::no;
};

}  // namespace weir::kv
