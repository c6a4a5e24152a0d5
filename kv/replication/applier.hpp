// Turns the requests of a primary's stream into changes here.
//
// Only requests that belong in such a stream are run: commands that write, SELECT, PUBLISH and their like;
// anything else ends the link. MULTI ... EXEC is applied whole once EXEC is there: nothing of a transaction
// that was cut off is applied. While a primary's request runs nothing expires by itself: a key that had
// expired there is a DEL before the request.
//
// What was applied is known to the byte, so a replica can continue from there. The bytes are the caller's.
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kv/replication/request_frame.hpp"
#include "kv/resp/request.hpp"
#include "kv/server/client.hpp"

namespace weir::kv {
class Server;
}

namespace weir::kv::repl {

class Applier {
 public:
  enum class Outcome : std::uint8_t {
    applied,     // taken() bytes are done with
    looked_at,   // a part of a transaction is there: to be called again
    incomplete,  // to be called again when more bytes are there
    failed       // error() says why
  };

  // `database` is selected; -1: the first.
  Applier(Server& server, int database);
  ~Applier();

  // `input` begins after the last byte applied.
  Outcome take(std::string_view input);
  std::size_t taken() const { return taken_; }
  // Whether the primary asked how far this server is. Asking resets it.
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

  Server& server_;
  std::unique_ptr<Client> client_;
  RequestFrame frame_;
  RequestParser parser_;
  std::size_t looked_at_ = 0;  // bytes of the input: of a transaction that has no EXEC yet
  std::size_t taken_ = 0;
  bool in_transaction_ = false;
  bool was_asked_ = false;
  std::string error_;
};

}  // namespace weir::kv::repl
