// A mapping of a file that somebody may cut short while we are in it.
//
// The first touch of a page that the file no longer has, or for which its file system has no room, is a
// SIGBUS, which would end a process for what another one did. In a guarded mapping it is not: empty private
// pages take the place of that page and all behind it, the copy that was under way runs on into them, and the
// mapping is lost(). Who copies asks that afterwards; it costs nothing before.
//
// Signals: the first of them sets a handler for SIGBUS, which hands on whatever is not about such a mapping
// to the handler before, or to the default. A program that sets its own later goes without this.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

#include "link/memory/mapping.hpp"

namespace weir::link {

class GuardedMapping {
 public:
  // Shared, for reading and writing. nullopt: it cannot be mapped, or too many are, or its faults cannot be
  // mended.
  static std::optional<GuardedMapping> of_file(int fd, std::size_t bytes);

  GuardedMapping(GuardedMapping&& other) noexcept
      : mapping_(std::move(other.mapping_)), guard_(std::exchange(other.guard_, nullptr)) {}
  GuardedMapping& operator=(GuardedMapping&&) = delete;
  ~GuardedMapping();

  std::byte* data() const { return mapping_.data(); }
  std::size_t size() const { return mapping_.size(); }
  bool lost() const;
  // Whether any mapping of this process was ever lost; a data path checks this first.
  static const std::atomic<bool>& any_lost() { return any_lost_; }

 private:
  struct Guard;
  friend struct Guards;
  GuardedMapping(Mapping mapping, Guard& guard) : mapping_(std::move(mapping)), guard_(&guard) {}

  Mapping mapping_;
  Guard* guard_;
  static inline std::atomic<bool> any_lost_ = false;
};

}  // namespace weir::link
