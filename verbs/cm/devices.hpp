// The RDMA devices of this process, opened once, and which of them has an address.
//
// Threading: any thread. Contexts stay open, and their default domains allocated, as long as the
// library is loaded: identifiers and applications share them.
#pragma once

#include <infiniband/verbs.h>

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "verbs/cm/endpoint.hpp"

namespace weir::cm {

class Devices {
 public:
  struct Place {
    ibv_context* context;
    std::uint8_t port;
    int gid_index;
    ibv_mtu mtu;
  };

  // Opens what there is; with no device it is empty, and every address unknown.
  Devices();
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  const std::vector<ibv_context*>& contexts() const { return contexts_; }
  // The place where the address is now a RoCE v2 GID; all of 127.0.0.0/8 is where 127.0.0.1 is. nullopt: it
  // is not an address of this host.
  std::optional<Place> find(const Endpoint& address) const;
  ibv_pd* default_pd(ibv_context* context);      // nullptr and errno
  ibv_xrcd* default_xrcd(ibv_context* context);  // likewise; this process's own

  // The most RDMA READs and atomics a queue pair answers and issues at once.
  struct Limits {
    std::uint8_t responder_resources;
    std::uint8_t initiator_depth;
  };
  static Limits limits(ibv_context* context);

 private:
  std::vector<ibv_context*> contexts_;
  std::mutex mutex_;
  std::map<ibv_context*, ibv_pd*> pds_;
  std::map<ibv_context*, ibv_xrcd*> xrcds_;
};

}  // namespace weir::cm
