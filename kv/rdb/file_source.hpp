// The bytes of a file, for a Reader: from where its descriptor stands. The descriptor stays the caller's.
#pragma once

#include "kv/rdb/reader.hpp"

namespace weir::kv::rdb {

class FileSource final : public Source {
 public:
  explicit FileSource(int fd) : fd_(fd) {}

  // 0 also where it cannot be read: then problem() says why.
  std::size_t read(char* into, std::size_t most) override;
  int problem() const { return problem_; }  // errno; 0: all is well

 private:
  int fd_;
  int problem_ = 0;
};

}  // namespace weir::kv::rdb
