#include "kv/store/set.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace weir::kv {

Member* Member::make(std::string_view text) {
  void* raw = ::operator new(sizeof(Member) + text.size());
  auto* member = new (raw) Member{static_cast<std::uint32_t>(text.size())};
  std::memcpy(static_cast<void*>(member + 1), text.data(), text.size());
  return member;
}

Set::~Set() { destroy(); }

void Set::destroy() {
  if (form_ == Form::integers) integers().~PackedIntegers();
  if (form_ == Form::packed) packed().~PackedMembers();
  if (form_ == Form::table) delete &table();
}

// All forms are moved by moving their bytes.
void Set::swap(Set& other) noexcept {
  alignas(Set) char bytes[sizeof(Set)];
  std::memcpy(bytes, static_cast<const void*>(this), sizeof bytes);
  std::memcpy(static_cast<void*>(this), static_cast<const void*>(&other), sizeof bytes);
  std::memcpy(static_cast<void*>(&other), bytes, sizeof bytes);
}

void Set::become(PackedMembers members) {
  destroy();
  new (room_) PackedMembers(std::move(members));
  form_ = Form::packed;
}

void Set::become(Members* table) {
  destroy();
  new (room_) Members*(table);
  form_ = Form::table;
}

std::size_t Set::size() const {
  if (form_ == Form::integers) return integers().size();
  return form_ == Form::packed ? packed().size() : table().size();
}

bool Set::contains(std::string_view member) const {
  if (form_ == Form::table) return table().look(member) != nullptr;
  if (form_ == Form::packed) return packed().find(listpack::Element(member)) != packed().end();
  const auto number = parse_int(member);
  return number && integers().contains(*number);
}

bool Set::insert(std::string_view member, const SetLimits& limits) {
  if (form_ == Form::integers) {
    const auto number = parse_int(member);
    // Where no integers may be a row, the first is packed.
    if (number && (limits.integers != 0 || integers().size() != 0)) {
      if (!integers().insert(*number)) return false;
      if (integers().size() > limits.integers) make_table();
      return true;
    }
    leave_integers(member, limits);
  }
  if (form_ == Form::packed) return insert_packed(member, limits);
  if (table().find(member) != nullptr) return false;
  table().insert(Member::make(member));
  return true;
}

bool Set::insert_packed(std::string_view member, const SetLimits& limits) {
  const listpack::Element element(member);
  if (packed().find(element) != packed().end()) return false;
  const bool fits = packed().size() < limits.packed.entries && member.size() <= limits.packed.bytes &&
                    member.size() < PackedMembers::most_bytes - packed().bytes();
  if (fits) {
    packed().append(element);
  } else {
    make_table();
    table().insert(Member::make(member));
  }
  return true;
}

// For a member that the row of integers does not take.
void Set::leave_integers(std::string_view member, const SetLimits& limits) {
  const std::size_t size = integers().size();
  IntText text;
  const auto length = [&](std::size_t index) { return format_int(integers()[index], text).size(); };
  const std::size_t longest = size == 0 ? 0 : std::max(length(0), length(size - 1));
  const bool fit =
      size < limits.packed.entries && member.size() <= limits.packed.bytes && longest <= limits.packed.bytes;
  fit ? make_packed() : make_table();
}

bool Set::erase(std::string_view member) {
  if (form_ == Form::table) return table().erase(member);
  if (form_ == Form::packed) {
    const PackedMembers::Place place = packed().find(listpack::Element(member));
    if (place == packed().end()) return false;
    packed().erase(place, PackedMembers::next(place), 1);
    return true;
  }
  const auto number = parse_int(member);
  return number && integers().erase(*number);
}

void Set::make_packed() {
  PackedMembers members;
  for_each([&](std::string_view member) {
    members.append(listpack::Element(member));
    return true;
  });
  become(std::move(members));
}

void Set::make_table() {
  auto table = std::make_unique<Members>();
  for_each([&](std::string_view member) {
    table->insert(Member::make(member));
    return true;
  });
  become(table.release());
}

Set Set::copy() const {
  Set other;
  if (form_ == Form::integers) {
    other.integers() = integers().copy();
  } else if (form_ == Form::packed) {
    other.become(packed().copy());
  } else {
    other.become(new Members);
    table().for_each([&](const Member& member) {
      other.table().insert(Member::make(member.text()));
      return true;
    });
  }
  return other;
}

std::size_t Set::heap_size() const {
  if (form_ == Form::integers) return integers().heap_size();
  if (form_ == Form::packed) return packed().heap_size();
  std::size_t size = sizeof(Members) + table().bucket_bytes();
  table().for_each([&](const Member& member) {
    size += sizeof(Member) + member.size;
    return true;
  });
  return size;
}

}  // namespace weir::kv
