// The interceptor that counts (method_stats.hpp), and the method "weir.stats" that tells.
#pragma once

#include <unordered_map>

#include "rpc/interceptor.hpp"
#include "rpc/method_stats.hpp"
#include "rpc/registry.hpp"

namespace weir::rpc {

class StatsKeeper final : public ServerInterceptor {
 public:
  Result<void> before(Context& context) override;
  void after(Context& context, const CallEnd& end) override;
  // Of functions that were called, by name.
  std::vector<MethodReport> reports() const;
  Registered method();

 private:
  std::unordered_map<std::string_view, MethodStats> by_method_;  // names are the registry's
};

}  // namespace weir::rpc
