#include "tensor/hub/catalogue.hpp"

#include <algorithm>
#include <utility>

namespace weir::tensor {
namespace {

std::shared_ptr<const Source> source_of(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return std::make_shared<const Source>(std::vector<Source::Piece>{Source::Piece(*owner)}, owner);
}

}  // namespace

Result<Catalogue::Published> Catalogue::publish(std::string_view name, const Metadata& metadata,
                                                std::shared_ptr<const Source> data, const Terms& terms) {
  if (name.empty() || name.size() > most_name_bytes)
    return fail(Errc::bad_array, "a name has 1 to 1024 bytes, not " + std::to_string(name.size()));
  if (name == names_of_hub || name.find('\0') != std::string_view::npos)
    return fail(Errc::bad_array, "this name is reserved, or has a zero in it");
  if (metadata.data_bytes != data->bytes())
    return fail(Errc::bad_array, "the metadata of '" + std::string(name) + "' describe " +
                                     std::to_string(metadata.data_bytes) + " bytes, but there are " +
                                     std::to_string(data->bytes()));
  Result<std::vector<std::byte>> block = encode(metadata);
  if (!block) return std::unexpected(block.error());

  auto version = std::make_shared<Version>();
  version->data = std::move(data);
  version->lease = terms.lease;
  Published published;
  VersionPtr before;  // released outside the lock: its owner's destructor may be slow
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = ids_.try_emplace(std::string(name), 0);
  if (is_new) {
    if (names_.size() >= limits_.most_names) {
      ids_.erase(known);
      return fail(Errc::too_much, "the hub has " + std::to_string(names_.size()) + " names, the limit");
    }
    names_.emplace_back().name = name;
    known->second = static_cast<std::uint32_t>(names_.size());
  }
  Name& entry = names_[known->second - 1];
  const std::uint64_t newest = entry.newest != nullptr ? entry.newest->number : 0;
  if (terms.after && *terms.after != newest)
    return fail(Errc::superseded, "'" + std::string(name) + "' has a new version meanwhile");
  if (entry.newest != nullptr && entry.metadata == *block) {
    version->metadata_id = entry.metadata_id;
    version->metadata_source = entry.newest->metadata_source;
  } else {
    entry.metadata_id = version->metadata_id = ++metadata_ids_;
    entry.what = metadata.tensors.size() == 1 && metadata.tensors[0].name.empty()
                     ? description(metadata.tensors[0].dtype, metadata.tensors[0].shape)
                     : "tree of " + std::to_string(metadata.tensors.size());
    entry.metadata = std::move(*block);
    version->metadata_source = source_of(entry.metadata);
  }
  published.version = version->number = ++entry.versions;
  published.revoked = retire(entry);
  before = std::exchange(entry.newest, std::move(version));
  return published;
}

bool Catalogue::retire(Name& name) {
  // If ours is the only reference, no reader has the version, so it can go.
  if (name.newest != nullptr && name.newest.use_count() > 1) name.older.push_back(name.newest);
  std::erase_if(name.older, [](const std::weak_ptr<const Version>& each) { return each.expired(); });
  bool revoked = false;
  while (name.older.size() > limits_.keep) {
    if (const VersionPtr oldest = name.older.front().lock()) {
      oldest->revoked = true;
      revoked = true;
    }
    name.older.pop_front();
  }
  return revoked;
}

bool Catalogue::withdraw(std::string_view name) {
  VersionPtr gone;
  const std::lock_guard lock(mutex_);
  const auto known = ids_.find(std::string(name));
  if (known == ids_.end()) return false;
  Name& entry = names_[known->second - 1];
  retire(entry);
  gone = std::exchange(entry.newest, nullptr);
  return gone != nullptr;
}

void Catalogue::revoke(std::string_view name, std::uint64_t number) {
  VersionPtr gone;  // released outside the lock
  const std::lock_guard lock(mutex_);
  const auto known = ids_.find(std::string(name));
  if (known == ids_.end()) return;
  Name& entry = names_[known->second - 1];
  if (entry.newest != nullptr && entry.newest->number == number) {
    gone = std::exchange(entry.newest, nullptr);
    gone->revoked = true;
    return;
  }
  for (const auto& each : entry.older)
    if (VersionPtr there = each.lock(); there != nullptr && there->number == number) {
      there->revoked = true;
      gone = std::move(there);
    }
}

Catalogue::Found Catalogue::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto known = ids_.find(std::string(name));
  if (known == ids_.end()) return {};
  return {known->second, names_[known->second - 1].newest};
}

Catalogue::Found Catalogue::find(std::uint32_t name_id) const {
  const std::lock_guard lock(mutex_);
  if (name_id == 0 || name_id > names_.size()) return {};
  return {name_id, names_[name_id - 1].newest};
}

std::vector<CatalogueEntry> Catalogue::list(std::size_t most) const {
  std::vector<CatalogueEntry> entries;
  const std::lock_guard lock(mutex_);
  for (const Name& each : names_)
    if (each.newest != nullptr && entries.size() < most)
      entries.push_back({each.name, each.what, each.newest->number, each.newest->data->bytes()});
  return entries;
}

VersionPtr Catalogue::listing(std::uint64_t metadata_id) const {
  std::vector<std::byte> bytes = encode_listing(list(most_listed));
  const Metadata metadata{bytes.size(), {{"", {1, 8, 1}, {bytes.size()}, 0}}};
  auto version = std::make_shared<Version>();
  version->number = 1;
  version->metadata_id = metadata_id;
  version->data = source_of(std::move(bytes));
  version->metadata_source = source_of(encode(metadata).value());
  return version;
}

std::uint64_t Catalogue::live_bytes() const {
  std::uint64_t bytes = 0;
  const std::lock_guard lock(mutex_);
  for (const Name& each : names_) {
    if (each.newest != nullptr) bytes += each.newest->data->bytes();
    for (const auto& older : each.older)
      if (const VersionPtr there = older.lock()) bytes += there->data->bytes();
  }
  return bytes;
}

MemoryTiers Catalogue::memory() const {
  const SharedMappings shared = SharedMappings::now();
  MemoryTiers tiers;
  const auto count = [&](const Version& version) {
    std::uint64_t of_it = 0;
    for (const Source::Piece& each : version.data->pieces()) of_it += shared.bytes_of(each);
    tiers.shared_bytes += of_it;
    tiers.private_bytes += version.data->bytes() - of_it;
  };
  const std::lock_guard lock(mutex_);
  for (const Name& each : names_) {
    if (each.newest != nullptr) count(*each.newest);
    for (const auto& older : each.older)
      if (const VersionPtr there = older.lock()) count(*there);
  }
  return tiers;
}

}  // namespace weir::tensor
