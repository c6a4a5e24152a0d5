// Ziplists and zipmaps: what listpacks were before Redis 7.0 (ziplist.c), and hashes before 2.6 (zipmap.c).
//
// A ziplist is a header (bytes in all, 4; offset of the last element, 4; elements, 2, 65535 for "count
// them"), elements, 0xff. An element is the size of the one before, an encoding and the data.
#pragma once

#include "kv/rdb/compact.hpp"

namespace weir::kv::rdb {

class Ziplist : public CompactReader {
 public:
  explicit Ziplist(std::string_view bytes);
  // The next element; it lives until the next call. False: there are no more, or it is broken.
  bool next(std::string_view& element);

 private:
  bool end();
  bool size_before();
  bool integer(std::uint8_t encoding, std::string_view& element);

  std::size_t announced_ = 0;
  std::size_t seen_ = 0;
  std::size_t last_ = 0;    // where the element before begins
  std::size_t before_ = 0;  // its size
};

// Keys and values in turn.
class Zipmap : public CompactReader {
 public:
  explicit Zipmap(std::string_view bytes);
  bool next(std::string_view& element);

 private:
  bool value_next_ = false;
};

}  // namespace weir::kv::rdb
