#include "rdma/channel/shared_receives.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "rdma/device/work_id.hpp"

namespace weir::rdma {

namespace {
constexpr std::size_t most_completions = 32;
}

Result<SharedReceives*> SharedReceives::of(Device& device, std::uint32_t block_bytes) {
  for (const auto& each : device.shared_receives())
    if (auto* found = dynamic_cast<SharedReceives*>(each.get());
        found != nullptr && found->block_bytes_ == block_bytes)
      return found;
  Result<std::unique_ptr<SharedReceives>> made =
      open(device, block_bytes, device.settings().shared_receive_blocks);
  if (!made) return std::unexpected(made.error());
  SharedReceives* opened = made->get();
  device.keep(std::move(*made));
  return opened;
}

Result<std::unique_ptr<SharedReceives>> SharedReceives::open(Device& device, std::uint32_t block_bytes,
                                                             std::uint32_t blocks) {
  const auto most = static_cast<std::uint32_t>(std::max(device.limits().max_srq_wr, 0));
  if (most == 0) return fail(Errc::device_error, "the device has no shared receive queues");
  const std::uint32_t count = std::min(blocks, most);
  std::unique_ptr<SharedReceives> made(new SharedReceives(device, block_bytes, count));
  Result<Device::Queue*> queue = device.reserve_alone(count, Device::Wake::solicited);
  if (!queue) return std::unexpected(queue.error());
  made->queue_ = *queue;
  Result<SharedReceiveQueue> srq = SharedReceiveQueue::create(device.pd(), count);
  if (!srq) return std::unexpected(srq.error());
  made->srq_ = std::move(*srq);
  for (std::uint32_t i = count; i > 0; --i) made->empty_.push_back(i - 1);
  made->refill();
  if (!made->empty_.empty())
    return fail(Errc::memory_limit, "the registered pool has no room for " + std::to_string(count) +
                                        " shared receives of " + std::to_string(block_bytes) + " bytes");
  made->queue_->receives = made.get();
  return made;
}

SharedReceives::~SharedReceives() {
  if (queue_ != nullptr) queue_->receives = nullptr;
}

bool SharedReceives::poll_once() {
  std::array<ibv_wc, most_completions> completions;
  const int count = queue_->cq.poll(completions);
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = completions[static_cast<std::size_t>(i)];
    const auto slot = static_cast<std::uint32_t>(WorkId::decode(completion.wr_id).tag);
    const auto channel = channels_.find(completion.qp_num);
    arrived_.push_back({channel != channels_.end() ? channel->second : nullptr, completion,
                        std::exchange(slots_[slot], nullptr)});
    empty_.push_back(slot);
  }
  if (count > 0) received_ += static_cast<std::uint64_t>(count);
  return count == static_cast<int>(most_completions);
}

std::size_t SharedReceives::poll(std::size_t most) {
  taken_.clear();
  if (arrived_.empty()) poll_once();
  while (!arrived_.empty() && taken_.size() < most) {
    taken_.push_back(std::move(arrived_.front()));
    arrived_.pop_front();
  }
  for (Received& each : taken_) {
    if (each.channel != nullptr)
      each.channel->on_shared_receive(each.completion, std::move(each.block));
    else
      give_back(std::move(each.block));
  }
  refill();
  return taken_.size();
}

void SharedReceives::leave(std::uint32_t qp_number) {
  const auto found = channels_.find(qp_number);
  if (found == channels_.end()) return;
  while (poll_once()) {
  }
  for (Received& each : arrived_)
    if (each.channel == found->second) each.channel = nullptr;
  channels_.erase(found);
}

void SharedReceives::refill() {
  while (!empty_.empty()) {
    std::array<ibv_recv_wr, most_completions> requests{};
    std::array<ibv_sge, most_completions> pieces{};
    std::size_t count = 0;
    while (count < most_completions && !empty_.empty()) {
      std::unique_ptr<ChannelBlock> block = take_spare();
      if (!block) {
        Result<std::unique_ptr<ChannelBlock>> made = ChannelBlock::make(device_.pool(), block_bytes_);
        if (!made) break;
        block = std::move(*made);
      }
      const std::uint32_t slot = empty_.back();
      empty_.pop_back();
      pieces[count] = {reinterpret_cast<std::uintptr_t>(block->bytes().data()), block_bytes_, block->lkey};
      requests[count] = {WorkId{slot, WorkKind::receive}.encode(), nullptr, &pieces[count], 1};
      if (count > 0) requests[count - 1].next = &requests[count];
      slots_[slot] = std::move(block);
      ++count;
    }
    if (count == 0) {
      ++ran_low_;  // retried when a block comes back, and at each tick
      return;
    }
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_srq_recv(srq_.get(), requests.data(), &bad) == 0) continue;
    for (; bad != nullptr; bad = bad->next) {  // the device took the ones before
      const auto slot = static_cast<std::uint32_t>(WorkId::decode(bad->wr_id).tag);
      give_back(std::exchange(slots_[slot], nullptr));
      empty_.push_back(slot);
    }
    ++ran_low_;
    return;
  }
}

std::unique_ptr<ChannelBlock> SharedReceives::take_spare() {
  if (spare_.empty()) return nullptr;
  std::unique_ptr<ChannelBlock> block = std::move(spare_.back());
  spare_.pop_back();
  return block;
}

void SharedReceives::give_back(std::unique_ptr<ChannelBlock> block) {
  block->store = nullptr;
  if (spare_.size() < slots_.size()) spare_.push_back(std::move(block));
}

SharedReceivesStats SharedReceives::stats() const {
  const std::size_t each = std::bit_ceil(std::max<std::size_t>(block_bytes_, MemoryPool::min_block_bytes));
  return {.channels = channels_.size(),
          .posted_bytes = (slots_.size() - empty_.size()) * each,
          .spare_bytes = spare_.size() * each,
          .received = received_,
          .ran_low = ran_low_};
}

}  // namespace weir::rdma
