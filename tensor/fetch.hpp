// One fetch or push on its way, from the caller's wish to what came of it.
//
// Ownership: shared by the caller, who waits for `done`, and the session that works on it. Threading: all but
// `done` belongs to the session's thread until `done` is true, and to the caller's afterwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tensor/error.hpp"
#include "tensor/metadata.hpp"
#include "tensor/source.hpp"

namespace weir::tensor {

// What a reader has of a name.
struct Fetched {
  std::uint64_t version = 0;
  std::uint64_t generation = 0;   // of the hub
  std::uint64_t metadata_id = 0;  // of that hub: equal for versions of a name with equal metadata
  std::shared_ptr<const Metadata> metadata;
  std::span<std::byte> data;     // in `out`, or in `memory`
  std::shared_ptr<void> memory;  // keeps data, where it is not the caller's
};

// The caller's own memory for a single array.
struct Out {
  DType dtype;
  std::vector<std::uint64_t> shape;
  std::span<std::byte> memory;
};

struct Fetch {
  // The wish.
  std::string name;
  std::uint64_t newer_than = 0;
  std::uint64_t generation = 0;  // of the hub that newer_than is of; 0: whichever is there
  bool wait = false;
  bool follow = false;  // one of several destinations that are there ahead for the next versions
  std::optional<Out> out;
  // A push instead: what the hub is to have.
  std::shared_ptr<const Source> pushed, pushed_metadata;

  // What came of it.
  Fetched fetched;
  std::optional<Error> failed;
  std::atomic<bool> done = false;  // released when the above is written

  // The session's.
  enum class Stage : std::uint8_t { queued, asked, asked_metadata, asked_data, reading };
  Stage stage = Stage::queued;
  std::uint32_t index = 0;
  bool cancelled = false;
  bool superseded = false;  // told while we were reading
  std::uint64_t metadata_id = 0;
  std::vector<std::byte> metadata_block;  // where a long one is written to
};

}  // namespace weir::tensor
