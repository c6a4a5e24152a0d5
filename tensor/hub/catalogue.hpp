// What a hub has published: the newest version of each name, and the older ones that are still being read.
//
// A version never changes. When a newer one is published, the old one lives on as long as a reader holds it
// (a VersionPtr). At most `keep` superseded versions of a name are held; beyond that the oldest is revoked:
// sessions that are not already sending it drop it, and their readers get Errc::superseded. A name gets its
// number when it is first published, and keeps it. Threading: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensor/arrays/listing.hpp"
#include "tensor/arrays/metadata.hpp"
#include "tensor/arrays/source.hpp"
#include "tensor/error.hpp"
#include "tensor/hub/leases.hpp"
#include "tensor/memory/memory_tiers.hpp"

namespace weir::tensor {

struct Version {
  std::uint64_t number = 0;       // counted for each name, from 1
  std::uint64_t metadata_id = 0;  // unique within this hub; equal for versions of a name with equal metadata
  std::shared_ptr<const Source> metadata_source;  // the encoded block
  std::shared_ptr<const Source> data;
  mutable std::atomic<bool> revoked = false;
  std::shared_ptr<Lease> lease;  // if it is lent
};
using VersionPtr = std::shared_ptr<const Version>;

class Catalogue {
 public:
  struct Limits {
    std::uint32_t keep = 2;  // superseded versions of a name that readers may still hold
    std::size_t most_names = 1 << 20;
  };
  struct Published {
    std::uint64_t version = 0;
    bool revoked = false;  // an older version was revoked
  };
  struct Terms {
    // Only if this is the newest version's number, 0 if there is none; else Errc::superseded.
    std::optional<std::uint64_t> after = {};
    std::shared_ptr<Lease> lease = {};
  };
  struct Found {
    std::uint32_t name_id = 0;  // 0: never published
    VersionPtr newest;
  };

  explicit Catalogue(const Limits& limits) : limits_(limits) {}

  // Errc::bad_array: the name or the metadata cannot be published. Errc::too_much: the hub has most_names.
  Result<Published> publish(std::string_view name, const Metadata& metadata,
                            std::shared_ptr<const Source> data, const Terms& terms);
  Result<Published> publish(std::string_view name, const Metadata& metadata,
                            std::shared_ptr<const Source> data) {
    return publish(name, metadata, std::move(data), Terms());
  }
  // Stops serving the name until it is published again, which continues its numbering. Returns false if the
  // name has no version.
  bool withdraw(std::string_view name);

  // Takes one version back: no new reader gets it, and those that were told where it lies lose it.
  void revoke(std::string_view name, std::uint64_t number);

  Found find(std::string_view name) const;
  Found find(std::uint32_t name_id) const;
  // Lists at most `most` names, in the order in which they were first published.
  std::vector<CatalogueEntry> list(std::size_t most) const;
  // The same list as a version to send, encoded anew on each call, with `metadata_id` as its metadata's
  // number.
  VersionPtr listing(std::uint64_t metadata_id) const;
  // Bytes of all versions that are still held, superseded ones included.
  std::uint64_t live_bytes() const;
  // What kind of memory those bytes lie in.
  MemoryTiers memory() const;

 private:
  struct Name {
    std::string name;
    std::uint64_t versions = 0;
    VersionPtr newest;
    std::vector<std::byte> metadata;  // the newest version's, encoded
    std::string what;                 // the newest version's description, for list()
    std::uint64_t metadata_id = 0;
    std::deque<std::weak_ptr<const Version>> older;  // oldest first
  };

  bool retire(Name& name);

  const Limits limits_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::deque<Name> names_;  // name id n is names_[n - 1]
  std::uint64_t metadata_ids_ = 0;
};

}  // namespace weir::tensor
