// A walk along the buffers of a readv or writev.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace weir::rsocket {

class Pieces {
 public:
  explicit Pieces(std::span<const iovec> pieces) : pieces_(pieces) {
    for (const iovec& piece : pieces) left_ += piece.iov_len;
    skip_empty();
  }
  std::size_t left() const { return left_; }
  // What lies contiguous from here.
  std::span<std::byte> front() const {
    if (pieces_.empty()) return {};
    return {static_cast<std::byte*>(pieces_.front().iov_base) + at_, pieces_.front().iov_len - at_};
  }
  void skip(std::size_t bytes) {  // at most left()
    left_ -= bytes;
    while (bytes > 0) {
      const std::size_t part = std::min(bytes, front().size());
      at_ += part;
      bytes -= part;
      skip_empty();
    }
  }
  void copy_to(std::span<std::byte> to) {  // to.size() at most left()
    while (!to.empty()) {
      const std::size_t part = std::min(to.size(), front().size());
      std::memcpy(to.data(), front().data(), part);
      to = to.subspan(part);
      skip(part);
    }
  }
  void copy_from(std::span<const std::byte> from) {  // from.size() at most left()
    while (!from.empty()) {
      const std::size_t part = std::min(from.size(), front().size());
      std::memcpy(front().data(), from.data(), part);
      from = from.subspan(part);
      skip(part);
    }
  }

 private:
  void skip_empty() {
    while (!pieces_.empty() && at_ == pieces_.front().iov_len) {
      pieces_ = pieces_.subspan(1);
      at_ = 0;
    }
  }
  std::span<const iovec> pieces_;
  std::size_t at_ = 0, left_ = 0;
};

}  // namespace weir::rsocket
