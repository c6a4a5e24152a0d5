// The interceptors that count (method_stats.hpp), and the method "weir.stats" that tells.
//
// Each thread of a server has a shard of the counts for its own connections, which only reports() of another
// thread may make it wait for. A server with one thread takes no lock.
#pragma once

#include <memory>
#include <vector>

#include "rpc/interceptor.hpp"
#include "rpc/method_stats.hpp"
#include "rpc/server/registry.hpp"

namespace weir::rpc {

class StatsKeeper {
 public:
  // One shard a thread.
  explicit StatsKeeper(std::size_t threads);
  ~StatsKeeper();

  std::shared_ptr<ServerInterceptor> shard(std::size_t thread) const;
  // Of functions that were called, by name; from any thread.
  std::vector<MethodReport> reports() const;
  Registered method();

 private:
  class Shard;
  std::vector<std::shared_ptr<Shard>> shards_;
};

}  // namespace weir::rpc
