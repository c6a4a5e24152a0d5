// Reads listpacks: Redis's compact sequence of texts and integers since 7.0 (format in its listpack.c).
//
// Header (total bytes, 4; number of elements, 2, where 65535 means "count them"), elements, 0xff. An element
// is one or more encoding bytes, the data, and its own size in a form that can be read backwards.
#pragma once

#include "kv/rdb/compact.hpp"

namespace weir::kv::rdb {

class Listpack : public CompactReader {
 public:
  explicit Listpack(std::string_view bytes);
  // Gets the next element, which is valid until the next call. Returns false at the end or if it is broken.
  bool next(std::string_view& element);

 private:
  bool size_backwards(std::size_t begin);
  bool end();

  std::size_t announced_ = 0;
  std::size_t seen_ = 0;
};

}  // namespace weir::kv::rdb
