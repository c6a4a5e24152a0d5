// New ids of traces and spans, and which new traces are recorded. Threading: any.
#pragma once

#include <mutex>
#include <random>

#include "rpc/trace_context.hpp"

namespace weir::rpc {

class TraceIds {
 public:
  // `share` of new traces are sampled: 0 to 1. Two processes must not have the same seed.
  TraceIds(std::uint64_t seed, double share) : random_(seed), share_(share) {}

  // A span within `parent`'s trace, and sampled if that is; nullptr: the first of a new trace.
  TraceContext next(const TraceContext* parent);

 private:
  std::uint64_t draw();  // never 0, which is no id

  std::mutex mutex_;
  std::mt19937_64 random_;
  const double share_;
};

}  // namespace weir::rpc
