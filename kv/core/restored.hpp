// Connects records to snapshots: the limits of small collections, and how much a key was used.
#pragma once

#include "kv/rdb/file_reader.hpp"
#include "kv/store/keyspace.hpp"

namespace weir::kv {

struct ServerCommon;

rdb::Limits restored_limits(const ServerCommon& server);
// The record's use under the server's maxmemory-policy, and its expiry.
rdb::About about_record(const ServerCommon& server, const Record& record);
// Stores the use in a record if the policy needs it.
void note_use(const ServerCommon& server, Record& record, const rdb::About& about);

}  // namespace weir::kv
