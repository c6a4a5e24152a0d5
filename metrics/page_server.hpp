// A web server of one page, for Prometheus: GET /metrics.
//
// It runs on an io_context of the program and needs no thread. The resources that silent or slow clients
// can take are bounded, and no client waits for another. A browser on this host that was led here by a name
// of a stranger's (DNS rebinding) gets nothing: over loopback, Host must be an address, localhost or this
// host's name. Threading: everything, including the page, runs on the io_context's thread.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

namespace weir::metrics {

// Beyond `connections`, or without descriptors, one that has not sent its request leaves for each that comes.
// If all have sent theirs, new ones wait in the kernel until one ends, which takes at most `patience`.
struct PageLimits {
  std::size_t connections = 64;
  std::chrono::milliseconds patience{5000};
};

class PageServer {
 public:
  using Page = std::function<std::string()>;  // called anew for each request

  // Empty host: every address. Port 0: a free port. The error is for a user to read.
  static std::expected<PageServer, std::string> listen(asio::io_context&, const std::string& host,
                                                       std::uint16_t port, Page page,
                                                       const PageLimits& limits = {});
  PageServer(PageServer&&) = default;
  // When this returns the page is no longer used.
  ~PageServer();

  std::string where() const;  // "127.0.0.1:9121", "[::1]:9121"
  std::uint16_t port() const;
  // Called when no more connections can be accepted. A lack of descriptors does not
  // count; then it tries again.
  void on_end(std::function<void(std::error_code)> ended);

 private:
  struct Serving;
  explicit PageServer(std::shared_ptr<Serving> serving) : serving_(std::move(serving)) {}

  std::shared_ptr<Serving> serving_;  // shared with conversations that are in progress
};

}  // namespace weir::metrics
