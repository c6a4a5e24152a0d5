// The interceptors that count (method_stats.hpp), and the method "weir.stats" that reports the counts.
//
// Each thread of a server has a shard of the counts for its own connections; only reports() from another
// thread may make it wait for that shard. A server with one thread takes no lock.
#pragma once

#include <memory>
#include <vector>

#include "rpc/interceptor.hpp"
#include "rpc/method_stats.hpp"
#include "rpc/server/registry.hpp"

namespace weir::rpc {

class StatsKeeper {
 public:
  // One shard per thread.
  explicit StatsKeeper(std::size_t threads);
  ~StatsKeeper();

  std::shared_ptr<ServerInterceptor> shard(std::size_t thread) const;
  // Reports on functions that were called, by name; from any thread.
  std::vector<MethodReport> reports() const;
  Registered method();

 private:
  class Shard;
  std::vector<std::shared_ptr<Shard>> shards_;
};

}  // namespace weir::rpc
