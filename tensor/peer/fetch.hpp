// One fetch or push in progress: the request and its result.
//
// Ownership: shared by the caller, who waits for `done`, and the session that works on it. Threading: until
// `done` is true, everything but `done` belongs to the session's thread; afterwards it belongs to the caller.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tensor/arrays/metadata.hpp"
#include "tensor/arrays/rows.hpp"
#include "tensor/arrays/source.hpp"
#include "tensor/error.hpp"
#include "tensor/link/wire.hpp"
#include "tensor/memory/spare_memory.hpp"

namespace weir::tensor {

// One version of a name, as a reader holds it.
struct Fetched {
  std::uint64_t version = 0;
  std::uint64_t generation = 0;  // the hub's
  // Unique within that hub; equal for versions of a name with equal metadata. 0: rows of an array.
  std::uint64_t metadata_id = 0;
  std::shared_ptr<const Metadata> metadata;
  std::span<std::byte> data;     // in `out`, or in `memory`
  std::shared_ptr<void> memory;  // owns `data` unless the caller's `out` does
};

// The caller's own memory for a single array.
struct Out {
  DType dtype;
  std::vector<std::uint64_t> shape;
  std::span<std::byte> memory;
};

struct Fetch {
  // The request.
  std::string name;
  std::uint64_t newer_than = 0;
  std::uint64_t generation = 0;  // the hub that newer_than refers to; 0: any hub
  bool wait = false;
  bool follow = false;  // one of several requests that a Follower posts ahead for the next versions
  std::optional<Out> out;
  std::vector<Rows> rows;  // empty: the whole version
  // Set for a push: what to send to the hub.
  std::shared_ptr<const Source> pushed, pushed_metadata;
  bool add = false;  // to the newest version there
  // Set instead of all that: the caller is done with a version.
  std::optional<wire::LeaseDone> lease_done;
  bool wants_bytes() const { return pushed == nullptr && !lease_done; }

  // The result.
  Fetched fetched;
  std::optional<Error> failed;
  // Stored with release after all results are written; the waiter loads it with acquire.
  std::atomic<bool> done = false;

  // Private to the session.
  enum class Stage : std::uint8_t { queued, asked, asked_metadata, asked_data, reading };
  Stage stage = Stage::queued;
  std::uint32_t index = 0;
  bool cancelled = false;
  bool superseded = false;  // the hub said so while we were still reading
  std::uint64_t metadata_id = 0;
  std::vector<Extent> extents;        // the rows, by the newest metadata that are known
  SpareMemory::Taken metadata_block;  // receives metadata that are too long for a message
};

}  // namespace weir::tensor
