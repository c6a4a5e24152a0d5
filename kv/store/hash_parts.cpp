#include "kv/store/hash_parts.hpp"

#include <cstring>

namespace weir::kv {

HashEntry* HashEntry::make(std::string_view field, Bytes value) {
  void* raw = ::operator new(sizeof(HashEntry) + field.size());
  auto* entry = new (raw) HashEntry{std::move(value), static_cast<std::uint32_t>(field.size())};
  std::memcpy(static_cast<void*>(entry + 1), field.data(), field.size());
  return entry;
}

void HashEntryTraits::destroy(HashEntry* entry) {
  entry->~HashEntry();
  ::operator delete(entry);
}

void HashParts::take(std::unique_ptr<Entries> table) {
  if (timed()) {
    piece()->table = std::move(table);
    return;
  }
  delete HashParts::table();
  word_ = reinterpret_cast<std::uintptr_t>(table.release());
}

void HashParts::become(std::unique_ptr<Both> both) {
  both->table.reset(table());
  word_ = reinterpret_cast<std::uintptr_t>(both.release()) + timed_bit;
}

FieldTimes& HashParts::make_times() {
  if (!timed()) become(std::make_unique<Both>());
  return piece()->times;
}

void HashParts::make_times(const FieldTimes& like) { become(std::make_unique<Both>(nullptr, like)); }

void HashParts::drop_times() {
  if (!timed()) return;
  const std::unique_ptr<Both> both(piece());
  word_ = reinterpret_cast<std::uintptr_t>(both->table.release());
}

void HashParts::destroy() {
  if (timed()) {
    delete piece();
  } else {
    delete table();
  }
}

}  // namespace weir::kv
