// A listpack: Redis's compact row of texts and integers since 7.0 (its listpack.c says the format).
//
// Header (bytes in all, 4; elements, 2, 65535 for "count them"), elements, 0xff. An element is an encoding
// byte or more, the data, and its own size backwards.
#pragma once

#include "kv/rdb/compact.hpp"

namespace weir::kv::rdb {

class Listpack : public CompactReader {
 public:
  explicit Listpack(std::string_view bytes);
  // The next element; it lives until the next call. False: there are no more, or it is broken.
  bool next(std::string_view& element);

 private:
  bool size_backwards(std::size_t begin);
  bool end();

  std::size_t announced_ = 0;
  std::size_t seen_ = 0;
};

}  // namespace weir::kv::rdb
