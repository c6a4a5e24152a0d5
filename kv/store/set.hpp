// A set of strings. While all members are integers and few it is a sorted array of them (Redis's intset,
// whose order clients see); then it becomes a table, and stays one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kv/number.hpp"
#include "kv/store/table.hpp"

namespace weir::kv {

struct Member {
  std::uint32_t size;

  std::string_view text() const { return {reinterpret_cast<const char*>(this + 1), size}; }
  static Member* make(std::string_view text);
};
struct MemberTraits {
  static std::string_view key(const Member& member) { return member.text(); }
  static void destroy(Member* member) { ::operator delete(member); }
};

class Set {
 public:
  std::size_t size() const { return integers_only_ ? integers_.size() : table_.size(); }
  bool integers_only() const { return integers_only_; }

  bool contains(std::string_view member) const;
  // True: it is new. More than `most_integers` integers make it a table.
  bool insert(std::string_view member, std::size_t most_integers);
  bool erase(std::string_view member);

  // visit(std::string_view member); the text lives during the call only. Stops when it returns false.
  template <class Visit>
  void for_each(Visit visit) const {
    IntText text;
    for (const std::int64_t i : integers_) {
      if (!visit(format_int(i, text))) return;
    }
    table_.for_each([&](const Member& member) { return visit(member.text()); });
  }
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit visit) const {
    if (integers_only_) {
      for_each([&](std::string_view member) {
        visit(member);
        return true;
      });
      return 0;
    }
    return table_.scan(cursor, [&](const Member& member) { visit(member.text()); });
  }
  template <class Random>
  std::string sample(Random&& random) const {
    IntText text;
    if (integers_only_) return std::string(format_int(integers_[random() % integers_.size()], text));
    return std::string(table_.sample(random)->text());
  }

  Set copy() const;
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most) { return table_.free_some(most, MemberTraits::destroy); }

 private:
  void grow();

  bool integers_only_ = true;
  std::vector<std::int64_t> integers_;  // sorted
  Table<Member, MemberTraits> table_;
};

}  // namespace weir::kv
