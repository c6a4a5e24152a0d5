// Looks at the counters of the processes of one runtime directory.
//
// A monitor attaches to the same-host link like any process but has no NIC. Its greeting shows none, so
// nobody sends to it. It maps the segments of the others read-only. When a connection ends, it knows that the
// process has ended. Not thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "link/memory/mapping.hpp"
#include "link/same_host.hpp"
#include "verbs/monitor/statistics.hpp"

namespace weir::verbs {

class Monitor {
 public:
  static link::Result<std::unique_ptr<Monitor>> open(std::string directory);

  using Visit = void (*)(void*, const ProcessSeen*);
  int look(Visit visit, void* with);

  const std::string& directory() const { return link_->directory(); }

 private:
  explicit Monitor(std::unique_ptr<link::SameHostLink> link) : link_(std::move(link)) {}
  struct Watched {
    link::NeighbourPtr neighbour;
    link::Mapping segment;
  };
  Watched* watch(link::Slot slot, bool& silent);

  std::unique_ptr<link::SameHostLink> link_;
  std::map<link::Slot, Watched> watched_;
};

}  // namespace weir::verbs
