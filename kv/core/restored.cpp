#include "kv/core/restored.hpp"

#include <algorithm>

#include "kv/core/server_common.hpp"

namespace weir::kv {

namespace {

constexpr std::int64_t ticks_in_s = 1000 / ServerCommon::use_tick_ms;

SmallLimits small(std::int64_t entries, std::int64_t bytes) {
  return {static_cast<std::size_t>(entries), static_cast<std::size_t>(bytes)};
}

}  // namespace

rdb::Limits restored_limits(const ServerCommon& server) {
  const Settings& settings = server.settings;
  return {small(settings.hash_max_listpack_entries, settings.hash_max_listpack_value),
          small(settings.zset_max_listpack_entries, settings.zset_max_listpack_value),
          {static_cast<std::size_t>(settings.set_max_intset_entries),
           small(settings.set_max_listpack_entries, settings.set_max_listpack_value)},
          NodeLimit::of_setting(settings.list_max_listpack_size)};
}

rdb::About about_record(const ServerCommon& server, const Record& record) {
  rdb::About about;
  if (record.expires_at_ms != Record::never) about.expires_at_ms = record.expires_at_ms;
  const auto policy = static_cast<EvictionPolicy>(server.settings.maxmemory_policy);
  if (counts_frequency(policy)) {
    about.frequency = server.use_clock.frequency(record);
  } else if (notes_use(policy)) {
    const std::int64_t ticks = std::int64_t{server.use_clock.tick} - std::int64_t{record.accessed};
    about.idle_s = static_cast<std::uint64_t>(std::max<std::int64_t>(ticks, 0) / ticks_in_s);
  }
  return about;
}

void note_use(const ServerCommon& server, Record& record, const rdb::About& about) {
  const UseClock& clock = server.use_clock;
  if (clock.notes == UseClock::Notes::frequency) {
    if (about.frequency) record.accessed = UseFrequency::mark(*about.frequency, clock.minute);
  } else if (about.idle_s) {
    const std::uint64_t ticks = std::min<std::uint64_t>(*about.idle_s, clock.tick / ticks_in_s) * ticks_in_s;
    record.accessed = clock.tick - static_cast<std::uint32_t>(ticks);
  }
}

}  // namespace weir::kv
