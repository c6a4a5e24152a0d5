// Reads RESTORE's payloads without their checksum. An accepted payload must be written and
// read back as the same value.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "kv/rdb/dump_payload.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::kv;
  constexpr std::uint64_t most = 1 << 20;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto value = rdb::restore(bytes, {}, most);
  static_cast<void>(rdb::restore_functions(bytes, most));
  if (!value) return 0;
  const std::string payload = rdb::dump(*value);
  const auto again = rdb::restore(*rdb::unseal(payload), {}, 2 * most);
  if (!again || again->type() != value->type() || again->elements() != value->elements()) std::abort();
  return 0;
}
