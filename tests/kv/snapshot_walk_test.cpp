// A walk shows the data as of its beginning, each record once, whatever happens to the data meanwhile.
#include "kv/store/snapshot_walk.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kv/store/lazy_free.hpp"

namespace weir::kv {
namespace {

using Contents = std::map<std::pair<int, std::string>, std::string>;

class Store {
 public:
  Store() {
    for (int i = 0; i < 3; ++i) databases.push_back(std::make_unique<Keyspace>(i, clock, lazy_free));
  }
  // As a command that writes does.
  void set(int db, const std::string& key, const std::string& value) {
    changing = true;
    Keyspace& keys = *databases[static_cast<std::size_t>(db)];
    Record* record = keys.find(key, 0);
    if (record == nullptr) record = &keys.insert(key);
    record->value.assign(value);
    changing = false;
  }
  void rename(int db, const std::string& from, const std::string& to) {
    changing = true;
    Keyspace& keys = *databases[static_cast<std::size_t>(db)];
    Record* record = keys.find(from, 0);
    if (record != nullptr && keys.find(to, 0) == nullptr) keys.rename(*record, to);
    changing = false;
  }
  Contents contents() const {
    Contents all;
    for (const auto& db : databases) {
      db->records().for_each([&](const Record& record) {
        all[{db->index(), std::string(record.key())}] = record.value.text().view();
        return true;
      });
    }
    return all;
  }

  UseClock clock;
  LazyFree lazy_free;
  std::vector<std::unique_ptr<Keyspace>> databases;
  bool changing = false;
};

TEST(SnapshotWalk, shows_what_was_there_when_it_began) {
  constexpr std::uint64_t seed = 20261125;
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  Store store;
  std::uint32_t number = 0;
  for (int round = 0; round < 20; ++round) {
    const auto key = [&] { return "key" + std::to_string(random() % 4000); };
    const auto db = [&] { return static_cast<int>(random() % 3); };
    for (int i = 0; i < 2000; ++i) store.set(db(), key(), std::to_string(random()));
    const Contents before = store.contents();
    Contents seen;
    const bool given_up = round % 7 == 6;
    {
      SnapshotWalk walk(++number, store.databases, store.changing, store.lazy_free,
                        [&](int database, const Record& record) {
                          const auto [place, fresh] = seen.insert({{database, std::string(record.key())},
                                                                   std::string(record.value.text().view())});
                          EXPECT_TRUE(fresh) << record.key();
                        });
      int steps = 0;
      do {
        for (std::uint64_t i = random() % 8; i > 0; --i) {
          const std::uint64_t what = random() % 1000;
          const int where = db();
          Keyspace& keys = *store.databases[static_cast<std::size_t>(where)];
          if (what < 500) {
            store.set(where, key(), "new");
          } else if (what < 700) {
            keys.erase(key());
          } else if (what < 900) {
            store.rename(where, key(), key());
          } else if (what < 990) {
            for (int k = 0; k < 5; ++k) store.set(where, "more" + std::to_string(random() % 20000), "new");
          } else if (what < 995) {
            keys.swap(*store.databases[static_cast<std::size_t>(db())]);
          } else {
            keys.clear();
          }
        }
      } while (walk.step() && !(given_up && ++steps == 20));
    }
    if (!given_up) {
      ASSERT_EQ(seen, before) << "round " << round;
    }
    store.lazy_free.free_all();
  }
}

TEST(SnapshotWalk, does_not_show_what_is_only_read_before_its_turn) {
  Store store;
  for (int i = 0; i < 1000; ++i) store.set(0, std::to_string(i), "x");
  std::size_t shown = 0;
  SnapshotWalk walk(1, store.databases, store.changing, store.lazy_free,
                    [&](int, const Record&) { ++shown; });
  for (int i = 0; i < 1000; ++i) store.databases[0]->find(std::to_string(i), 0);
  EXPECT_EQ(shown, 0u);
}

}  // namespace
}  // namespace weir::kv
