// A file descriptor with one owner.
#pragma once

#include <unistd.h>

#include <utility>

#include "link/not_cancelled.hpp"

namespace weir::link {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  // Forgets the old one before closing it: a child forked in between must not close the number again, which
  // may be somebody else's by then.
  void reset(int fd = -1) {
    const int old = std::exchange(fd_, fd);
    if (old < 0) return;
    const NotCancelled whole;  // close() ends a cancelled thread, and out of a destructor the process
    ::close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace weir::link
