// Reads a file for a Reader, from its descriptor's current position. The caller keeps owning the descriptor.
#pragma once

#include "kv/rdb/reader.hpp"

namespace weir::kv::rdb {

class FileSource final : public Source {
 public:
  explicit FileSource(int fd) : fd_(fd) {}

  // Returns 0 also if reading fails; problem() then says why.
  std::size_t read(char* into, std::size_t most) override;
  int problem() const { return problem_; }  // errno, or 0

 private:
  int fd_;
  int problem_ = 0;
};

}  // namespace weir::kv::rdb
