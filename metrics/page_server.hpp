// A web server of one page, for Prometheus: GET /metrics.
//
// It lives on an io_context of the program's own and needs no thread. What clients that are silent or slow
// can take of it is bounded, and no client waits for another. Threading: everything from the thread of the
// io_context, the page too.
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

// Beyond `connections` new ones wait in the kernel until one ends, which takes `patience` at most.
struct PageLimits {
  std::size_t connections = 64;
  std::chrono::milliseconds patience{5000};
};

class PageServer {
 public:
  using Page = std::function<std::string()>;  // made anew for each who asks

  // No host: every address. Port 0: a free one. The error is fit to print.
  static std::expected<PageServer, std::string> listen(asio::io_context&, const std::string& host,
                                                       std::uint16_t port, Page page,
                                                       const PageLimits& limits = {});
  PageServer(PageServer&&) = default;
  // Nothing of the page is used any more when it returns.
  ~PageServer();

  std::string where() const;  // "127.0.0.1:9121", "[::1]:9121"
  std::uint16_t port() const;
  // Told when connections cannot be accepted any more. While the process is out of descriptors it tries
  // again.
  void on_end(std::function<void(std::error_code)> ended);

 private:
  struct Serving;
  explicit PageServer(std::shared_ptr<Serving> serving) : serving_(std::move(serving)) {}

  std::shared_ptr<Serving> serving_;  // with the conversations that go on
};

}  // namespace weir::metrics
