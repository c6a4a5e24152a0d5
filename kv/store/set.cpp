#include "kv/store/set.hpp"

#include <algorithm>
#include <cstring>

#include "kv/store/tight_room.hpp"

namespace weir::kv {

Member* Member::make(std::string_view text) {
  void* raw = ::operator new(sizeof(Member) + text.size());
  auto* member = new (raw) Member{static_cast<std::uint32_t>(text.size())};
  std::memcpy(static_cast<void*>(member + 1), text.data(), text.size());
  return member;
}

bool Set::contains(std::string_view member) const {
  if (!integers_only_) return table_.look(member) != nullptr;
  const auto number = parse_int(member);
  return number && std::ranges::binary_search(integers_, *number);
}

bool Set::insert(std::string_view member, std::size_t most_integers) {
  if (integers_only_) {
    if (const auto number = parse_int(member)) {
      if (std::ranges::binary_search(integers_, *number)) return false;
      make_tight_room(integers_);
      integers_.insert(std::ranges::lower_bound(integers_, *number), *number);
      if (integers_.size() > most_integers) grow();
      return true;
    }
    grow();
  }
  if (table_.find(member) != nullptr) return false;
  table_.insert(Member::make(member));
  return true;
}

bool Set::erase(std::string_view member) {
  if (!integers_only_) return table_.erase(member);
  const auto number = parse_int(member);
  if (!number) return false;
  const auto it = std::ranges::lower_bound(integers_, *number);
  if (it == integers_.end() || *it != *number) return false;
  integers_.erase(it);
  return true;
}

void Set::grow() {
  integers_only_ = false;
  IntText text;
  for (const std::int64_t i : integers_) table_.insert(Member::make(format_int(i, text)));
  integers_ = {};
}

Set Set::copy() const {
  Set other;
  other.integers_only_ = integers_only_;
  other.integers_ = integers_;
  table_.for_each([&](const Member& member) {
    other.table_.insert(Member::make(member.text()));
    return true;
  });
  return other;
}

std::size_t Set::heap_size() const {
  std::size_t size = integers_.capacity() * sizeof(std::int64_t) + table_.bucket_bytes();
  table_.for_each([&](const Member& member) {
    size += sizeof(Member) + member.size;
    return true;
  });
  return size;
}

}  // namespace weir::kv
