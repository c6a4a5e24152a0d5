#include "kv/settings/wrong_settings.hpp"

#include <string_view>

namespace weir::kv::cluster {

std::string wrong_for_gateway(const Settings& settings) {
  if (settings.cluster_gateway.empty())
    return settings.tls_cluster ? "tls-cluster is for a gateway. Give --cluster-gateway too, or leave it out."
                                : "";
  const auto refuse = [](std::string_view setting) {
    return "a cluster gateway keeps no data, so " + std::string(setting) +
           " does not go with --cluster-gateway. Leave one of them out.";
  };
  if (!settings.replicaof.empty()) return refuse("--replicaof");
  if (settings.appendonly) return refuse("--appendonly");
  if (!settings.save.empty()) return refuse("--save");
  return {};
}

}  // namespace weir::kv::cluster
