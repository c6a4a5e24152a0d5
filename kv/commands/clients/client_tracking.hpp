// CLIENT's subcommands about client-side caching (kv/clients/tracking.hpp).
#pragma once

namespace weir::kv {

struct Call;

void client_tracking(const Call& call);
void client_caching(const Call& call);
void client_getredir(const Call& call);
void client_trackinginfo(const Call& call);

}  // namespace weir::kv
