// All records of all databases as they are at one instant, shown one after the other while the data changes
// on.
//
// The walk goes through the tables bucket by bucket. A record that is about to change or to go before its
// turn is shown first: databases tell ShownRecords (shown_records.hpp), which says why each record is shown
// once however often tables grow or shrink meanwhile.
// Threading: none, as its databases.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kv/store/keyspace.hpp"
#include "kv/store/shown_records.hpp"

namespace weir::kv {

class SnapshotWalk {
 public:
  using Databases = std::vector<std::unique_ptr<Keyspace>>;
  using Show = ShownRecords::Show;

  // `number` is not 0 and larger than that of every walk before. `changing` says whether what looks up
  // records now may change them. Both outlive it, and the databases do; they take part in one walk at a time,
  // and each lies at its index().
  SnapshotWalk(std::uint32_t number, Databases& databases, const bool& changing, LazyFree& lazy_free,
               Show show);
  ~SnapshotWalk();
  SnapshotWalk(const SnapshotWalk&) = delete;
  SnapshotWalk& operator=(const SnapshotWalk&) = delete;

  // Shows the records of the next bucket, if any; false: all were shown.
  bool step();
  // How many records of emptied databases are kept only to be shown.
  std::size_t records_left() const { return shown_.records_left(); }

 private:
  Databases* databases_;
  ShownRecords shown_;
};

}  // namespace weir::kv
