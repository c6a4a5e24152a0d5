// A set of strings. While all members are integers and few it is a sorted row of them (Redis's intset, whose
// order clients see); then it becomes a table, and stays one.
//
// It lies in the Value that holds it (kv/store/value.hpp). Threading: none.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "kv/number.hpp"
#include "kv/store/packed_integers.hpp"
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
  Set() : integers_() {}
  Set(Set&& other) noexcept : Set() { swap(other); }
  Set& operator=(Set&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Set();

  std::size_t size() const { return integers_only_ ? integers_.size() : table().size(); }
  bool integers_only() const { return integers_only_; }

  bool contains(std::string_view member) const;
  // True: it is new. More than `most_integers` integers make it a table.
  bool insert(std::string_view member, std::size_t most_integers);
  bool erase(std::string_view member);

  // visit(std::string_view member); the text lives during the call only. Stops when it returns false.
  template <class Visit>
  void for_each(Visit visit) const {
    if (!integers_only_) return table().for_each([&](const Member& member) { return visit(member.text()); });
    IntText text;
    for (std::size_t i = 0; i < integers_.size(); ++i) {
      if (!visit(format_int(integers_[i], text))) return;
    }
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
    return table().scan(cursor, [&](const Member& member) { visit(member.text()); });
  }
  template <class Random>
  std::string sample(Random&& random) const {
    IntText text;
    if (integers_only_) return std::string(format_int(integers_[random() % integers_.size()], text));
    return std::string(table().sample(random)->text());
  }

  Set copy() const;
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most) {
    return !integers_only_ && table().free_some(most, MemberTraits::destroy);
  }

 private:
  using Members = Table<Member, MemberTraits>;

  Members& table() const {
    Members* table;
    std::memcpy(&table, table_, sizeof table);
    return *table;
  }
  void become(Members* table);
  void swap(Set& other) noexcept;
  void grow();

  union {
    PackedIntegers integers_;
    char table_[sizeof(Members*)];  // the address, which need not be aligned here
  };
  bool integers_only_ = true;
};

}  // namespace weir::kv
