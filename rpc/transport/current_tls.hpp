// The certificates that a server's new connections begin with; replaced when they are renewed.
//
// A connection keeps the context that it began with. Ownership: shared by a server's listeners. Threading:
// any thread.
#pragma once

#include <mutex>
#include <utility>

#include "transport/tls_context.hpp"

namespace weir::rpc {

class CurrentTls {
 public:
  explicit CurrentTls(transport::TlsContext context) : context_(std::move(context)) {}

  transport::TlsContext get() const {
    const std::lock_guard lock(mutex_);
    return context_;
  }
  void replace(transport::TlsContext renewed) {
    const std::lock_guard lock(mutex_);
    context_.swap(renewed);
  }

 private:
  mutable std::mutex mutex_;
  transport::TlsContext context_;
};

}  // namespace weir::rpc
