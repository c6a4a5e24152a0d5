#include "kv/store/record.hpp"

#include <cstring>
#include <new>

namespace weir::kv {

Record* Record::make(std::string_view key) {
  void* raw = ::operator new(sizeof(Record) + key.size());
  auto* record = new (raw) Record;
  record->key_size = static_cast<std::uint32_t>(key.size());
  std::memcpy(static_cast<void*>(record + 1), key.data(), key.size());
  return record;
}

void Record::destroy(Record* record) {
  record->~Record();
  ::operator delete(record);
}

}  // namespace weir::kv
