#include "rdma/device/device.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

namespace weir::rdma {

Device::Device(ibv_context* context, const EngineSettings& settings, ProtectionDomain pd,
               CompletionChannel channel)
    : context_(context),
      settings_(settings),
      pd_(std::move(pd)),
      pool_(std::make_unique<MemoryPool>(pd_, settings.pool)),
      channel_(std::move(channel)) {}

Device::~Device() = default;

Result<std::unique_ptr<Device>> Device::open(ibv_context* context, const EngineSettings& settings) {
  ibv_device_attr limits{};
  if (const int failed = ibv_query_device(context, &limits); failed != 0)
    return fail_os(Errc::device_error, "cannot query the RDMA device", failed);
  Result<ProtectionDomain> pd = ProtectionDomain::allocate(context);
  if (!pd) return std::unexpected(pd.error());
  Result<CompletionChannel> channel = CompletionChannel::create(context);
  if (!channel) return std::unexpected(channel.error());
  std::unique_ptr<Device> device(new Device(context, settings, std::move(*pd), std::move(*channel)));
  device->limits_ = limits;
  if (Result<MemoryRegion> everything = MemoryRegion::enroll_everything(device->pd_))
    device->everything_ = std::move(*everything);
  return device;
}

Result<Device::Queue*> Device::reserve(std::uint32_t entries, Wake wake) {
  for (const auto& queue : queues_) {
    if (queue->wake != wake || queue->receives != nullptr) continue;
    if (queue->reserved + entries > static_cast<std::uint32_t>(queue->cq.entries())) continue;
    queue->reserved += entries;
    return queue.get();
  }
  return make_queue(entries, std::max(settings_.completion_queue_entries, static_cast<int>(entries)), wake);
}

Result<Device::Queue*> Device::reserve_alone(std::uint32_t entries, Wake wake) {
  return make_queue(entries, static_cast<int>(entries), wake);
}

Result<Device::Queue*> Device::make_queue(std::uint32_t entries, int wanted, Wake wake) {
  const int possible = limits_.max_cqe > 0 ? std::min(wanted, limits_.max_cqe) : wanted;
  if (static_cast<std::uint32_t>(possible) < entries)
    return fail(Errc::connection_limit, "the device's completion queues hold " + std::to_string(possible) +
                                            " entries, a connection needs " + std::to_string(entries) +
                                            "; lower the work queue depths");
  // "Any" should give different processes, and different queues of one process, different vectors.
  const int vector = settings_.completion_vector >= 0
                         ? settings_.completion_vector
                         : static_cast<int>(getpid()) + static_cast<int>(queues_.size());
  Result<CompletionQueue> cq = CompletionQueue::create(context_, possible, channel_, vector);
  if (!cq) return std::unexpected(cq.error());
  queues_.push_back(std::make_unique<Queue>(Queue{std::move(*cq), wake, entries, 0}));
  return queues_.back().get();
}

}  // namespace weir::rdma
