// The verbs objects of the program: which exist, what each was made from, where it was created, and, of the
// last that were destroyed, where that was.
//
// Threading: any thread. Its lock is a leaf: nothing else is taken under it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "verbs/check/place.hpp"

namespace weir::check {

enum class Kind : std::uint8_t { context, pd, region, cq, channel, qp, srq, ah, window };
const char* name_of(Kind);

struct Object {
  Kind kind;
  std::uint32_t number = 0;  // of a queue pair; the key of a region
  Place created;
  std::vector<const void*> made_from;
  bool of_library = false;  // librdmacm created it for itself, and destroys it when it likes
};

struct Region {
  std::uint32_t lkey = 0, rkey = 0;
  std::uint64_t addr = 0;  // as work requests name it
  std::uint64_t base = 0;  // in memory
  std::uint64_t length = 0;
  unsigned access = 0;
  const ibv_pd* pd = nullptr;
  Place registered;
  Place deregistered;  // no frames: it lives

  bool lives() const { return deregistered.frames[0] == nullptr; }
  bool covers(std::uint64_t at, std::uint64_t bytes) const {
    return at >= addr && at - addr <= length && bytes <= length - (at - addr);
  }
};

class Objects {
 public:
  void created(const void* handle, Object);
  // Where it was destroyed, if that is the last that is known about it: then it must not be destroyed again.
  std::optional<Object> destroyed_before(const void* handle, Place& where) const;
  void destroyed(const void* handle, const Place&);
  std::optional<Object> find(const void* handle) const;
  std::vector<Object> users_of(const void* handle) const;
  std::vector<Object> all() const;

  void registered(const Region&);
  void deregistered(std::uint32_t lkey, const Place&);
  std::optional<Region> region(std::uint32_t key) const;  // alive, or among the last that were deregistered
  // A live region that overlaps that memory.
  std::optional<Region> region_at(std::uint64_t base, std::uint64_t length) const;

  void forget_all();

 private:
  static constexpr std::size_t max_remembered = 4096;
  struct Gone {
    const void* handle;
    Object object;
    Place where;
  };
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Object> live_;
  std::deque<Gone> gone_;
  std::unordered_map<std::uint32_t, Region> regions_;
  std::deque<Region> gone_regions_;
  std::multimap<std::uint64_t, std::uint32_t> by_base_;  // of the live regions
  std::uint64_t longest_region_ = 0;
};

Objects& objects();

// False until the first: cheap, and asked before objects() exist, by calls that have nothing to do with
// verbs.
bool has_regions();

}  // namespace weir::check
