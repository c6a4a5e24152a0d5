// Between records and what snapshots say of them: limits of small collections, and how much a key was used.
#pragma once

#include "kv/rdb/file_reader.hpp"
#include "kv/store/keyspace.hpp"

namespace weir::kv {

class Server;

rdb::Limits restored_limits(Server& server);
// What is noted of the record's use under the server's maxmemory-policy, and when it expires.
rdb::About about_record(const Server& server, const Record& record);
// Notes it in a record, where the policy has a use for it.
void note_use(const Server& server, Record& record, const rdb::About& about);

}  // namespace weir::kv
