#include "kv/store/set.hpp"

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

Set::~Set() {
  if (integers_only_) {
    integers_.~PackedIntegers();
  } else {
    delete &table();
  }
}

// Both are moved by moving their bytes.
void Set::swap(Set& other) noexcept {
  alignas(Set) char bytes[sizeof(Set)];
  std::memcpy(bytes, static_cast<const void*>(this), sizeof bytes);
  std::memcpy(static_cast<void*>(this), static_cast<const void*>(&other), sizeof bytes);
  std::memcpy(static_cast<void*>(&other), bytes, sizeof bytes);
}

void Set::become(Members* table) {
  integers_.~PackedIntegers();
  std::memcpy(table_, &table, sizeof table);
  integers_only_ = false;
}

bool Set::contains(std::string_view member) const {
  if (!integers_only_) return table().look(member) != nullptr;
  const auto number = parse_int(member);
  return number && integers_.contains(*number);
}

bool Set::insert(std::string_view member, std::size_t most_integers) {
  if (integers_only_) {
    if (const auto number = parse_int(member)) {
      if (!integers_.insert(*number)) return false;
      if (integers_.size() > most_integers) grow();
      return true;
    }
    grow();
  }
  if (table().find(member) != nullptr) return false;
  table().insert(Member::make(member));
  return true;
}

bool Set::erase(std::string_view member) {
  if (!integers_only_) return table().erase(member);
  const auto number = parse_int(member);
  return number && integers_.erase(*number);
}

void Set::grow() {
  auto table = std::make_unique<Members>();
  for_each([&](std::string_view member) {
    table->insert(Member::make(member));
    return true;
  });
  become(table.release());
}

Set Set::copy() const {
  Set other;
  if (integers_only_) {
    other.integers_ = integers_.copy();
    return other;
  }
  other.become(new Members);
  table().for_each([&](const Member& member) {
    other.table().insert(Member::make(member.text()));
    return true;
  });
  return other;
}

std::size_t Set::heap_size() const {
  if (integers_only_) return integers_.heap_size();
  std::size_t size = sizeof(Members) + table().bucket_bytes();
  table().for_each([&](const Member& member) {
    size += sizeof(Member) + member.size;
    return true;
  });
  return size;
}

}  // namespace weir::kv
