// What a hub has published: for each name its newest version, and the older ones that somebody still reads.
//
// A version never changes. When the next one comes it lives on while a reader has it (a VersionPtr); of those
// there are `keep` a name, and beyond that the oldest is revoked: whoever has it and is not being sent it
// lets go, and its reader gets Superseded. A name gets a number when it is first published, which it keeps.
// Threading: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/error.hpp"
#include "tensor/listing.hpp"
#include "tensor/memory_tiers.hpp"
#include "tensor/metadata.hpp"
#include "tensor/source.hpp"

namespace weir::tensor {

struct Version {
  std::uint64_t number = 0;       // of its name, from 1
  std::uint64_t metadata_id = 0;  // of this hub; versions of a name with equal metadata have the same
  std::shared_ptr<const Source> metadata_source;  // the encoded block
  std::shared_ptr<const Source> data;
  mutable std::atomic<bool> revoked = false;
};
using VersionPtr = std::shared_ptr<const Version>;

class Catalogue {
 public:
  struct Limits {
    std::uint32_t keep = 2;  // superseded versions of a name that readers may hold on to
    std::size_t most_names = 1 << 20;
  };
  struct Published {
    std::uint64_t version = 0;
    bool revoked = false;  // an older one was
  };
  struct Found {
    std::uint32_t name_id = 0;  // 0: never published
    VersionPtr newest;
  };

  explicit Catalogue(const Limits& limits) : limits_(limits) {}

  // bad_array: the name or the metadata; too_much: names.
  Result<Published> publish(std::string_view name, const Metadata& metadata,
                            std::shared_ptr<const Source> data);
  // No more versions of it are handed out until it is published again, with the next number. False: there is
  // none.
  bool withdraw(std::string_view name);

  Found find(std::string_view name) const;
  Found find(std::uint32_t name_id) const;
  // Of at most `most` names, in the order in which they were first published.
  std::vector<CatalogueEntry> list(std::size_t most) const;
  // That list as a version to send, made anew each time; its metadata have the number `metadata_id`.
  VersionPtr listing(std::uint64_t metadata_id) const;
  // Those that readers still hold, superseded ones included.
  std::uint64_t live_bytes() const;
  // Of those bytes.
  MemoryTiers memory() const;

 private:
  struct Name {
    std::string name;
    std::uint64_t versions = 0;
    VersionPtr newest;
    std::vector<std::byte> metadata;  // of the newest, encoded
    std::string what;                 // of the newest, as list() says it
    std::uint64_t metadata_id = 0;
    std::deque<std::weak_ptr<const Version>> older;  // oldest first
  };

  bool retire(Name& name);

  const Limits limits_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::deque<Name> names_;  // by number, from 1
  std::uint64_t metadata_ids_ = 0;
};

}  // namespace weir::tensor
