#include "rpc/tracing/trace_ids.hpp"

#include <cstring>

namespace weir::rpc {

std::uint64_t TraceIds::draw() {
  std::uint64_t drawn;
  do drawn = random_();
  while (drawn == 0);
  return drawn;
}

TraceContext TraceIds::next(const TraceContext* parent) {
  const std::lock_guard lock(mutex_);
  TraceContext made;
  if (parent != nullptr) {
    made = *parent;
  } else {
    for (std::size_t at = 0; at < made.trace_id.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t part = draw();
      std::memcpy(made.trace_id.data() + at, &part, sizeof part);
    }
    made.flags = std::uniform_real_distribution<double>(0, 1)(random_) < share_ ? 1 : 0;
  }
  const std::uint64_t id = draw();
  std::memcpy(made.span_id.data(), &id, sizeof id);
  return made;
}

}  // namespace weir::rpc
