// All records of all databases as they are at one instant, shown one after the other while the data changes
// on.
//
// The walk goes through the tables bucket by bucket. A record that is about to change or to go before its
// turn is shown first (Keyspace calls before_change()), and each record notes in which walk it was shown
// last, so it is shown once however often tables grow or shrink meanwhile. Records made after the instant
// bear the walk's number from the start. A database that is emptied leaves its table to the walk.
//
// Invariant: what is not marked with number() is as it was when the walk began.
// Threading: none, as its databases.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kv/store/keyspace.hpp"

namespace weir::kv {

class SnapshotWalk {
 public:
  using Databases = std::vector<std::unique_ptr<Keyspace>>;
  using Show = std::function<void(int database, const Record& record)>;

  // `number` is not 0 and larger than that of every walk before. `changing` says whether what looks up
  // records now may change them. Both outlive it, and the databases do; they take part in one walk at a time.
  SnapshotWalk(std::uint32_t number, Databases& databases, const bool& changing, LazyFree& lazy_free,
               Show show);
  ~SnapshotWalk();
  SnapshotWalk(const SnapshotWalk&) = delete;
  SnapshotWalk& operator=(const SnapshotWalk&) = delete;

  // Shows the records of the next bucket, if any; false: all were shown.
  bool step();

  // For Keyspace.
  std::uint32_t number() const { return number_; }
  bool changing() const { return *changing_; }
  void before_change(const Keyspace& db, Record& record);
  void emptied(const Keyspace& db, Records records);
  void swapped(const Keyspace& a, const Keyspace& b);

 private:
  // How far the walk is in one database, or in a table that was one.
  struct Place {
    int database;  // as it was numbered at the instant
    std::uint64_t cursor = 0;
    bool over = false;
  };
  struct Orphan {
    Records records;
    Place place;
  };

  void step_in(Records& records, Place& place);
  void show(int database, Record& record);

  std::uint32_t number_;
  Databases* databases_;
  const bool* changing_;
  LazyFree* lazy_free_;
  Show show_;
  std::vector<Place> places_;  // by Keyspace::index()
  std::deque<Orphan> orphans_;
};

}  // namespace weir::kv
