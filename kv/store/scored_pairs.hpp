// A small sorted set: members and scores as packed pairs, ordered by score, then by the members' bytes.
//
// A score is the shortest element that reads back as the same number: an integer, a decimal text of less than
// eight bytes, or the eight bytes of the double itself. There is no negative zero here, as in Redis's small
// sorted sets. Threading: none.
#pragma once

#include <cstdint>
#include <string_view>

#include "kv/store/packed_elements.hpp"

namespace weir::kv {

class ScoredPairs {
 public:
  using Place = PackedPairs::Place;

  ScoredPairs copy() const;

  std::size_t size() const { return pairs_.size(); }
  std::size_t heap_size() const { return pairs_.heap_size(); }
  bool takes(std::string_view member) const {
    return member.size() < PackedPairs::most_bytes - pairs_.bytes();
  }

  Place begin() const { return pairs_.begin(); }
  Place end() const { return pairs_.end(); }
  static Place next(Place pair) { return PackedPairs::next(pair); }
  Place at(std::size_t index) const { return pairs_.at(index); }
  static double score(Place pair);

  // end(): it is not there.
  Place find(std::string_view member) const { return pairs_.find(listpack::Element(member)); }
  void insert(std::string_view member, double score);  // it must not be there yet
  void rescore(Place pair, double score);
  // `members` from there on.
  void erase(Place first, std::size_t members);
  void clear() { pairs_.clear(); }

 private:
  PackedPairs pairs_;
};

}  // namespace weir::kv
