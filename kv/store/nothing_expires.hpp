// While a log or a primary's stream is replayed, every key is there until that says it goes.
#pragma once

#include <memory>
#include <vector>

#include "kv/store/keyspace.hpp"

namespace weir::kv {

// While it lives, no key expires in any of these databases.
class NothingExpires {
 public:
  using Databases = std::vector<std::unique_ptr<Keyspace>>;

  explicit NothingExpires(const Databases& databases) : databases_(databases) { set(true); }
  ~NothingExpires() { set(false); }
  NothingExpires(const NothingExpires&) = delete;
  NothingExpires& operator=(const NothingExpires&) = delete;

 private:
  void set(bool nothing) const {
    for (const auto& db : databases_) db->expire_nothing(nothing);
  }

  const Databases& databases_;
};

}  // namespace weir::kv
