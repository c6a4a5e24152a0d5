// Receives that many channels of one device share: a shared receive queue (IBA 10.2.9) and its blocks.
//
// Which channel a message is for is known when it came, by the queue pair that took it: its block changes
// hands then, from here to that channel, and another takes its place at once, the one that came back last if
// there is any. So what is posted does not grow with the number of channels, and one that holds on to what
// it received shrinks its own window, not the others'.
//
// The windows of all channels together may be more than what is posted: then a peer's SEND may find nothing
// (RNR), and its device tries again. So whoever uses this asks its peers' devices to retry for ever.
//
// Invariant: each slot is empty, or its block is posted, or its completion has not been looked at. What a
// queue pair took must be polled before it is destroyed, or its slot would stay empty for ever: leave().
//
// Ownership: the Device's. Threading: the engine's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rdma/channel/channel_block.hpp"
#include "rdma/device/device.hpp"
#include "rdma/verbs/objects.hpp"

namespace weir::rdma {

class SharedReceives final : public SharedCompletions {
 public:
  // The device's in blocks of this size; made when they are first asked for.
  static Result<SharedReceives*> of(Device& device, std::uint32_t block_bytes);
  SharedReceives(const SharedReceives&) = delete;
  SharedReceives& operator=(const SharedReceives&) = delete;
  ~SharedReceives() override;

  ibv_srq* get() const { return srq_.get(); }
  Device::Queue& queue() { return *queue_; }
  std::uint32_t block_bytes() const { return block_bytes_; }

  // What this queue pair takes is for that channel.
  void join(std::uint32_t qp_number, BlockUser& channel) { channels_[qp_number] = &channel; }
  // The queue pair takes nothing more, and is about to be destroyed.
  void leave(std::uint32_t qp_number);

  // SharedCompletions
  std::size_t poll(std::size_t most) override;
  void refill() override;
  SharedReceivesStats stats() const override;

  // Blocks of this size to be used for anything, and back.
  std::unique_ptr<ChannelBlock> take_spare();
  void give_back(std::unique_ptr<ChannelBlock> block);

 private:
  struct Received {
    BlockUser* channel = nullptr;  // null: it left
    ibv_wc completion{};
    std::unique_ptr<ChannelBlock> block;
  };

  static Result<std::unique_ptr<SharedReceives>> open(Device& device, std::uint32_t block_bytes,
                                                      std::uint32_t blocks);
  SharedReceives(Device& device, std::uint32_t block_bytes, std::uint32_t blocks)
      : device_(device), block_bytes_(block_bytes), slots_(blocks) {}
  bool poll_once();

  Device& device_;
  const std::uint32_t block_bytes_;
  Device::Queue* queue_ = nullptr;
  std::vector<std::unique_ptr<ChannelBlock>> slots_;  // by the wr_id of their receives
  SharedReceiveQueue srq_;
  std::vector<std::uint32_t> empty_;
  std::vector<std::unique_ptr<ChannelBlock>> spare_;
  std::deque<Received> arrived_;
  std::vector<Received> taken_;                             // by the poll() that is under way
  std::unordered_map<std::uint32_t, BlockUser*> channels_;  // by queue pair number
  std::uint64_t received_ = 0, ran_low_ = 0;
};

}  // namespace weir::rdma
