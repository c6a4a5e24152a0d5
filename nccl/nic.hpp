// The RDMA devices of this process: found once, opened while something uses them.
//
// find_devices() asks the connection manager, for each address of the host, which RDMA device is behind it;
// that works the same for the software NIC and real ones. A Nic is such a device held open: its protection
// domain and the registrations, which all connections of the process share (regIsGlobal). It lives as long as
// a listener, a connection, a registration or a communicator holds it. When the last one ends nothing of it
// remains, because NCCL then unloads the plugin.
//
// Threading: any thread; the registrations have a lock of their own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nccl/settings.hpp"
#include "rdma/verbs/cm.hpp"
#include "rdma/verbs/objects.hpp"

namespace weir::nccl {

class Nic;

// A device as found: plain data that outlives any open device.
struct FoundDevice {
  std::string name;
  rdma::Endpoint address;  // port 0
  std::uint64_t guid = 0;
  int port = 1;
  int speed_mbps = 0;
  std::uint32_t max_message_bytes = 0;
  bool software = false;
};
rdma::Result<std::vector<FoundDevice>> find_devices(const Settings& settings, bool software);

// Memory registered with the device, with one holder for each regMr() call.
struct Region {
  std::shared_ptr<Nic> nic;  // keeps the protection domain
  std::uintptr_t begin = 0, end = 0;
  rdma::MemoryRegion region;
  std::uint32_t holders = 1;

  bool covers(const void* data, std::size_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    return at >= begin && at <= end && bytes <= end - at;
  }
};

class Nic : public std::enable_shared_from_this<Nic> {
 public:
  static rdma::Result<std::shared_ptr<Nic>> open(const FoundDevice& device);

  const FoundDevice& device() const { return device_; }
  ibv_context* context() const { return anchor_->verbs; }
  const rdma::ProtectionDomain& pd() const { return pd_; }
  const rdma::CompletionChannel& channel() const { return channel_; }

  // Returns an existing registration that covers these bytes, or makes one.
  rdma::Result<Region*> enroll(void* data, std::size_t bytes);
  // Gives up one hold; the last one ends the registration.
  static void release(Region* region);
  std::size_t regions() const;

 private:
  Nic(FoundDevice device, rdma::EventChannel events, rdma::CmId anchor, rdma::ProtectionDomain pd,
      rdma::CompletionChannel channel);

  FoundDevice device_;
  rdma::EventChannel events_;
  rdma::CmId anchor_;  // bound to the device, so that the connection manager keeps its context
  rdma::ProtectionDomain pd_;
  rdma::CompletionChannel channel_;  // never armed: connections poll
  mutable std::mutex mutex_;
  // Keyed by the start address; several may start at the same one.
  std::multimap<std::uintptr_t, std::unique_ptr<Region>> regions_;
};

}  // namespace weir::nccl
