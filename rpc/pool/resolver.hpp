// Where the servers of a service are: a list, a name of the DNS, a file that is watched; or anything else
// that can be asked and says when to ask again, an etcd or Consul watch for instance.
//
// Threading: the io_context's thread.
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "rpc/error.hpp"

namespace weir::rpc {

class Resolver {
 public:
  virtual ~Resolver() = default;
  // The addresses of the servers there are now, as connect() takes them. A failure, or an exception, leaves
  // those known before.
  virtual asio::awaitable<Result<std::vector<std::string>>> resolve() = 0;
  // Ends when asking again may give something else; may throw when it is cancelled, or cannot tell: it is
  // asked again after a while.
  virtual asio::awaitable<void> changed() = 0;
};

std::unique_ptr<Resolver> static_list(std::vector<std::string> addresses);
// Every address that `host` has in the DNS, as "SCHEME://ADDRESS:PORT"; asked again after `every`. These are
// numbers: for TLS, TlsOptions::server_name says which name the certificates are for.
std::unique_ptr<Resolver> dns(std::string scheme, std::string host, std::uint16_t port,
                              std::chrono::milliseconds every = std::chrono::seconds(30));
// One address a line, # begins a comment. Read again whenever it is written or replaced.
std::unique_ptr<Resolver> watched_file(std::string path);

}  // namespace weir::rpc
