// Turns the requests of a primary's stream into changes of this server's data.
//
// It runs only requests that belong in such a stream: commands that write, SELECT, PUBLISH and their like.
// Any other request ends the link. MULTI ... EXEC is applied as a whole once EXEC has arrived, so nothing of
// an interrupted transaction is applied. While a primary's request runs nothing expires by itself: for a key
// that had expired at the primary, a DEL precedes the request.
//
// The applied position is known to the byte, so a replica can continue from there. The caller owns the bytes.
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kv/clients/client.hpp"
#include "kv/replication/request_frame.hpp"
#include "kv/resp/request.hpp"

namespace weir::kv {
class ServerParts;
}

namespace weir::kv::repl {

class Applier {
 public:
  enum class Outcome : std::uint8_t {
    applied,     // taken() bytes are applied
    looked_at,   // read a part of a transaction: call again
    incomplete,  // call again when more bytes have arrived
    failed       // error() says why
  };

  // `database` is the one selected; -1: the first.
  Applier(ServerParts& server, int database);
  ~Applier();

  // `input` starts after the last applied byte.
  Outcome take(std::string_view input);
  std::size_t taken() const { return taken_; }
  // Whether the primary asked for this server's position. Asking resets it.
  bool was_asked() { return std::exchange(was_asked_, false); }
  const std::string& error() const { return error_; }
  int database() const { return client_->db; }

 private:
  bool parse(std::string_view request);
  Outcome take_request(std::string_view input, std::size_t end);
  bool run_transaction(std::string_view input);
  bool is_known(Arguments words);
  bool run(Arguments words);
  bool fail(std::string why);

  ServerParts& server_;
  std::unique_ptr<Client> client_;
  RequestFrame frame_;
  RequestParser parser_;
  std::size_t looked_at_ = 0;  // bytes of the input that belong to a transaction without its EXEC
  std::size_t taken_ = 0;
  bool in_transaction_ = false;
  bool was_asked_ = false;
  std::string error_;
};

}  // namespace weir::kv::repl
