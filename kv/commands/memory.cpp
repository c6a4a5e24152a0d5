// MEMORY: the memory of values and of the server.
#include "kv/core/memory.hpp"

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/commands/memory_figures.hpp"

namespace weir::kv {

namespace {

void memory_usage(const Call& call) {
  std::int64_t samples = 0;
  for (std::size_t i = 3; i < call.count(); i += 2) {
    if (!is_word(call[i], "SAMPLES") || i + 1 >= call.count()) return call.syntax_error();
    if (!call.integer(i + 1, samples)) return;
    if (samples < 0) return call.syntax_error();
  }
  const Record* record = call.db.peek(call[2], call.now_ms);
  if (record == nullptr) return call.reply.null();
  call.reply.integer(
      static_cast<std::int64_t>(sizeof(Record) + record->key_size + record->value.heap_size()));
}

void memory_stats(const Call& call) {
  const MemoryFigures figures(call.server);
  const auto percent = [](std::size_t part, std::size_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) * 100 / static_cast<double>(whole);
  };
  const auto field = [&](std::string_view name, std::size_t value) {
    call.reply.bulk(name);
    call.reply.integer(static_cast<std::int64_t>(value));
  };
  const auto real = [&](std::string_view name, double value) {
    call.reply.bulk(name);
    call.reply.real(value);
  };
  const auto bytes = [&](std::string_view name, std::int64_t value) {
    call.reply.bulk(name);
    call.reply.integer(value);
  };
  std::size_t filled = 0;
  for (const auto& db : call.server.databases) filled += db->size() != 0 ? 1 : 0;
  call.reply.map(27 + filled);
  field("peak.allocated", figures.peak);
  field("total.allocated", figures.used);
  field("startup.allocated", figures.at_start);
  field("replication.backlog", figures.history);
  field("clients.slaves", figures.replicas);
  field("clients.normal", figures.clients);
  field("cluster.links", 0);
  field("aof.buffer", figures.uncounted.log);
  field("lua.caches", figures.script_texts);
  field("functions.caches", figures.scripts);
  for (const auto& db : call.server.databases) {
    if (db->size() == 0) continue;
    call.reply.bulk("db." + std::to_string(db->index()));
    call.reply.map(3);
    field("overhead.hashtable.main", MemoryFigures::main_table(*db));
    field("overhead.hashtable.expires", MemoryFigures::expiry_table(*db));
    field("overhead.hashtable.slot-to-keys", 0);
  }
  field("overhead.total", figures.overhead());
  field("keys.count", figures.keys);
  field("keys.bytes-per-key", figures.keys == 0 ? 0 : figures.data() / figures.keys);
  field("dataset.bytes", figures.data());
  real("dataset.percentage",
       percent(figures.data(), figures.used - std::min(figures.used, figures.at_start)));
  real("peak.percentage", percent(figures.used, figures.peak));
  field("allocator.allocated", figures.used);
  field("allocator.active", figures.resident);
  field("allocator.resident", figures.resident);
  real("allocator-fragmentation.ratio", figures.ratio());
  bytes("allocator-fragmentation.bytes", figures.unused());
  real("allocator-rss.ratio", 1);
  bytes("allocator-rss.bytes", 0);
  real("rss-overhead.ratio", 1);
  bytes("rss-overhead.bytes", 0);
  real("fragmentation", figures.ratio());
  bytes("fragmentation.bytes", figures.unused());
}

void memory_malloc_stats(const Call& call) { call.reply.verbatim("txt", allocator_report()); }

// Reports the most important figures if they are unusual.
void memory_doctor(const Call& call) {
  const MemoryFigures figures(call.server);
  constexpr std::size_t little = 5 << 20;
  std::string text;
  if (figures.used < little) {
    text = "There is almost no data, so the figures mean little.\n";
  } else {
    if (figures.peak > figures.used + figures.used / 2) {
      text += "- The peak was " + std::to_string(figures.peak) + " bytes, now " +
              std::to_string(figures.used) +
              " are used: the process keeps the difference for later use. MEMORY PURGE returns it to the "
              "system.\n";
    } else if (figures.ratio() > 1.4 && figures.unused() > std::int64_t{10} << 20) {
      text += "- The process has " + std::to_string(figures.unused()) +
              " bytes more than are used: memory is fragmented. MEMORY PURGE returns pages that are wholly "
              "free to the system.\n";
    }
    const std::size_t clients = call.server.clients.size();
    if (clients != 0 && figures.clients / clients > 200 * 1024) {
      text += "- Clients hold " + std::to_string(figures.clients / clients) +
              " bytes each on average: some send large requests or do not read their replies (CLIENT LIST, "
              "tot-mem).\n";
    }
  }
  call.reply.verbatim("txt", text.empty() ? "Nothing to report.\n" : text);
}

void memory_purge(const Call& call) {
  call.server.lazy_free.free_all();
  give_back_memory();
  call.reply.ok();
}
void memory_help(const Call& call) {
  reply_help(call, {
                       "DOCTOR",
                       "    Return memory problems reports.",
                       "MALLOC-STATS",
                       "    Return internal statistics report from the memory allocator.",
                       "PURGE",
                       "    Attempt to purge dirty pages for reclamation by the allocator.",
                       "STATS",
                       "    Return information about the memory usage of the server.",
                       "USAGE <key> [SAMPLES <count>]",
                       "    Return memory in bytes used by <key> and its value. All elements are counted.",
                   });
}

constexpr Command of_memory(std::string_view name, void (*run)(const Call&), std::string_view summary,
                            std::uint32_t flags = 0) {
  return {name, 2, flags, 0, 0, 0, run, "server", summary, {}, "memory"};
}

}  // namespace

std::span<const Command> memory_commands() {
  using namespace flag;
  static constexpr Command subcommands[] = {
      {"usage",
       -3,
       readonly,
       2,
       2,
       1,
       memory_usage,
       "server",
       "Returns a value's size in memory.",
       {},
       "memory"},
      of_memory("doctor", memory_doctor, "Reports memory problems."),
      of_memory("malloc-stats", memory_malloc_stats, "Returns the allocator's own report."),
      of_memory("purge", memory_purge, "Gives free memory back to the system."),
      of_memory("stats", memory_stats, "Tells where the memory is."),
      of_memory("help", memory_help, "Explains MEMORY.", loading | stale),
  };
  static constexpr Command commands[] = {
      {"memory", -2, 0, 0, 0, 0, nullptr, "server", "Looks at memory.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
