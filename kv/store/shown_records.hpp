// How far a snapshot is: which records it was shown, and where it is in each database.
//
// Databases call it before a record changes or goes (before_change()), so each record is shown as it was when
// the snapshot began, and once: it notes in which snapshot it was shown last. Records made since bear the
// snapshot's number from the start. The table of a database that is emptied is kept here until it was shown.
//
// Invariant: what is not marked with number() is as it was when the snapshot began.
// Threading: none, as the databases.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "kv/store/record.hpp"

namespace weir::kv {

class LazyFree;

class ShownRecords {
 public:
  using Show = std::function<void(int database, const Record& record)>;

  // `databases` is how many there are; `changing` says whether a command that looks up records now may change
  // them. `changing` and `lazy_free` outlive this object.
  ShownRecords(std::uint32_t number, std::size_t databases, const bool& changing, LazyFree& lazy_free,
               Show show);
  ~ShownRecords();
  ShownRecords(const ShownRecords&) = delete;
  ShownRecords& operator=(const ShownRecords&) = delete;

  // For the databases, which are named by Keyspace::index().
  std::uint32_t number() const { return number_; }
  bool changing() const { return *changing_; }
  void before_change(int database, Record& record) { show(place_of(database).database, record); }
  void emptied(int database, Records records);
  void swapped(int a, int b);

  // For the walk. Shows the next bucket of a table that a database left; false: there is none.
  bool step_in_left();
  // How many records the tables have that databases left. They stay until they are shown.
  std::size_t records_left() const;
  // A database that was not shown entirely.
  std::optional<int> unfinished() const;
  // Shows the next bucket of that database, which has these records.
  void step_in(int database, Records& records) { step_in(place_of(database), records); }

 private:
  // How far the walk is in one database, or in a table that was one.
  struct Place {
    int database;  // as it was numbered at the instant
    std::uint64_t cursor = 0;
    bool over = false;
  };
  struct Left {
    Records records;
    Place place;
  };

  Place& place_of(int database) { return places_[static_cast<std::size_t>(database)]; }
  void step_in(Place& place, Records& records);
  void show(int database, Record& record);

  const std::uint32_t number_;
  const bool* const changing_;
  LazyFree* const lazy_free_;
  const Show show_;
  std::vector<Place> places_;  // by Keyspace::index()
  std::deque<Left> left_;
};

}  // namespace weir::kv
