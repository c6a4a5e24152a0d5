#include "kv/replication/full_sync.hpp"

#include <algorithm>

#include "hash/keyed.hpp"
#include "kv/clients/client.hpp"
#include "kv/core/history.hpp"
#include "kv/core/server_common.hpp"
#include "kv/counting/cycles.hpp"
#include "kv/rdb/checksum.hpp"

namespace weir::kv::repl {

namespace {

constexpr std::int64_t turn_us = 500;
constexpr std::int64_t rest_behind_us = 1000;  // while the slowest replica has too much unsent
constexpr std::size_t ahead = std::size_t{4} << 20;

// It must not be predictable: a value could contain it, and the snapshot would end there.
std::string unforeseeable_mark(std::uint64_t random) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string mark;
  for (std::uint64_t part = 0; mark.size() < History::id_size; ++part) {
    std::uint64_t bits = hash::Keyed{}(std::pair{random, part});
    for (int i = 0; i < 16 && mark.size() < History::id_size; ++i, bits >>= 4) mark += digits[bits % 16];
  }
  return mark;
}

}  // namespace

FullSync::FullSync(SnapshotSource source, std::uint32_t walk, std::vector<Client*> to)
    : server_(source.server),
      to_(std::move(to)),
      mark_(unforeseeable_mark(server_.random())),
      snapshot_(
          source, walk,
          to_.front()->replica->wants_only_functions ? Snapshot::Use::functions : Snapshot::Use::replica,
          [this](const rdb::Encoded& chunk) {
            bytes_.clear();
            chunk.finish(rdb::Compression::none, bytes_);
            if (server_.settings.rdbchecksum) sum_ = rdb::checksum(sum_, bytes_);
            spool_ ? spool_->add(bytes_) : send(bytes_);
          },
          to_.front()->replica->reads_valkey ? rdb::Dialect::valkey : rdb::Dialect::redis) {
  if (to_.front()->replica->takes_end_mark) {
    send("$EOF:" + mark_ + "\r\n");
  } else {
    spool_.emplace(server_.settings.dir, server_.surroundings.disk);
  }
}

// One value may be larger than any limit.
std::size_t FullSync::most_ahead() const { return ahead + largest_step_; }

void FullSync::send(std::string_view bytes) {
  sent_ += bytes.size();
  for (Client* client : to_) {
    client->output.append(bytes);
    client->replica->given += bytes.size();
    client->will_flush();
  }
}

std::size_t FullSync::most_unsent() const {
  std::size_t most = 0;
  for (const Client* client : to_) most = std::max(most, client->output.size());
  return most;
}

std::optional<std::int64_t> FullSync::take_turn() {
  if (most_unsent() > ahead) return rest_behind_us;
  const double cycles_per_us = server_.cycle_rate.per_us();
  const std::uint64_t began = cycles_now();
  const auto spent_us = [&] {
    return static_cast<std::int64_t>(static_cast<double>(cycles_now() - began) / cycles_per_us);
  };
  bool more = true;
  while (more && spent_us() < turn_us && most_unsent() <= ahead) {
    const std::uint64_t before = sent_;
    more = step();
    largest_step_ = std::max<std::size_t>(largest_step_, sent_ - before);  // a value may be several pieces
  }
  if (more) return spent_us();
  if (failure().empty()) finish();
  return std::nullopt;
}

// Returns false when there is nothing left to do.
bool FullSync::step() {
  if (!failure().empty()) return false;
  if (part_ == Part::sends_spool) return send_some_of_spool();
  if (snapshot_.step()) return true;
  const std::string end = rdb::end_of_file(sum_, server_.settings.rdbchecksum);
  if (!spool_) return send(end), false;
  spool_->add(end);
  if (!failure().empty()) return false;
  part_ = Part::sends_spool;
  send("$" + std::to_string(spool_->size()) + "\r\n");
  return true;
}

bool FullSync::send_some_of_spool() {
  send(spool_->read_some());
  return failure().empty() && !spool_->read_all();
}

// A replica that knows the length needs no pause behind the snapshot, and one that said SYNC never confirms.
void FullSync::finish() {
  if (!spool_) send(mark_);
  for (Client* client : to_) {
    client->replica->stage = spool_ ? Replica::Stage::online : Replica::Stage::loads;
    client->replica->heard_ms = server_.steady_ms;
  }
}

}  // namespace weir::kv::repl
