// Reads ziplists, which listpacks replaced in Redis 7.0 (ziplist.c), and zipmaps, which held hashes
// before 2.6 (zipmap.c).
//
// A ziplist is a header (total bytes, 4; offset of the last element, 4; number of elements, 2, where 65535
// means "count them"), elements, 0xff. An element is the size of the previous one, an encoding and the data.
#pragma once

#include "kv/rdb/compact.hpp"

namespace weir::kv::rdb {

class Ziplist : public CompactReader {
 public:
  explicit Ziplist(std::string_view bytes);
  // Gets the next element, which is valid until the next call. Returns false at the end or if it is broken.
  bool next(std::string_view& element);

 private:
  bool end();
  bool size_before();
  bool integer(std::uint8_t encoding, std::string_view& element);

  std::size_t announced_ = 0;
  std::size_t seen_ = 0;
  std::size_t last_ = 0;    // where the previous element begins
  std::size_t before_ = 0;  // its size
};

// Returns keys and values alternately.
class Zipmap : public CompactReader {
 public:
  explicit Zipmap(std::string_view bytes);
  bool next(std::string_view& element);

 private:
  bool value_next_ = false;
};

}  // namespace weir::kv::rdb
