// A set of strings. While all members are integers and few it is a sorted row of them (Redis's intset, whose
// order clients see). With other short members it is packed in the order they came while they are few
// (Redis's listpack). Past the limits it becomes a table, and stays one.
//
// It lies in the Value that holds it (kv/store/value.hpp). Threading: none.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "kv/store/packed_elements.hpp"
#include "kv/store/packed_integers.hpp"
#include "kv/store/small_limits.hpp"
#include "kv/store/table.hpp"
#include "kv/text/number.hpp"

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

// Up to how many integers a set is a row of them, and up to where other members are packed.
struct SetLimits {
  std::size_t integers = 512;
  SmallLimits packed{128, 64};
};

class alignas(8) Set {
 public:
  enum class Form : std::uint8_t { integers, packed, table };

  Set() { new (room_) PackedIntegers; }
  Set(Set&& other) noexcept : Set() { swap(other); }
  Set& operator=(Set&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Set();

  Form form() const { return form_; }
  std::size_t size() const;

  bool contains(std::string_view member) const;
  // Null if the members are not stored as a row of integers.
  const PackedIntegers* as_integers() const { return form_ == Form::integers ? &integers() : nullptr; }
  // True: it is new.
  bool insert(std::string_view member, const SetLimits& limits);
  bool erase(std::string_view member);

  // visit(std::string_view member); the text lives during the call only. Stops when it returns false.
  template <class Visit>
  void for_each(Visit visit) const {
    if (form_ == Form::table)
      return table().for_each([&](const Member& member) { return visit(member.text()); });
    IntText text;
    if (form_ == Form::packed) {
      const PackedMembers::Place end = packed().end();
      for (auto at = packed().begin(); at != end; at = PackedMembers::next(at)) {
        if (!visit(listpack::text(at, text))) return;
      }
      return;
    }
    for (std::size_t i = 0; i < integers().size(); ++i) {
      if (!visit(format_int(integers()[i], text))) return;
    }
  }
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit visit) const {
    if (form_ == Form::table)
      return table().scan(cursor, [&](const Member& member) { visit(member.text()); });
    for_each([&](std::string_view member) {
      visit(member);
      return true;
    });
    return 0;
  }
  // For a small set it takes time in proportion to its size.
  template <class Random>
  std::string sample(Random&& random) const {
    if (form_ == Form::table) return std::string(table().sample(random)->text());
    IntText text;
    const std::size_t index = random() % size();
    if (form_ == Form::packed) return std::string(listpack::text(packed().at(index), text));
    return std::string(format_int(integers()[index], text));
  }

  Set copy() const;
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most) {
    return form_ == Form::table && table().free_some(most, MemberTraits::destroy);
  }

 private:
  using Members = Table<Member, MemberTraits>;

  template <class What>
  What& as() const {
    return *std::launder(reinterpret_cast<What*>(const_cast<char*>(room_)));
  }
  PackedIntegers& integers() const { return as<PackedIntegers>(); }
  PackedMembers& packed() const { return as<PackedMembers>(); }
  Members& table() const { return *as<Members*>(); }
  void destroy();
  void become(PackedMembers members);
  void become(Members* table);
  void swap(Set& other) noexcept;
  bool insert_packed(std::string_view member, const SetLimits& limits);
  void leave_integers(std::string_view member, const SetLimits& limits);
  void make_packed();
  void make_table();

  char room_[sizeof(PackedIntegers)];  // what the form says: the row, the members, or the table's address
  Form form_ = Form::integers;
};
static_assert(sizeof(Set) == 24 && sizeof(PackedMembers) <= sizeof(PackedIntegers));

}  // namespace weir::kv
