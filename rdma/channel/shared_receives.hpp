// Receives that many channels of one device share: a shared receive queue (IBA 10.2.9) and its blocks.
//
// Only when a message arrives is it known which channel it is for, by the queue pair that took it. Its block
// then moves from here to that channel, and another block takes its place at once: the block that came back
// last, if there is one. So the number of posted receives does not grow with the number of channels, and a
// channel that holds on to what it received shrinks its own window, not the others'.
//
// The windows of all channels together may exceed what is posted. Then a peer's SEND may find no receive
// (RNR), and its device tries again. So every user of this asks its peers' devices to retry for ever.
//
// Invariant: each slot is empty, or its block is posted, or its completion has not been polled. What a queue
// pair took must be polled before the queue pair is destroyed, or its slot would stay empty for ever:
// leave().
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
  // The device's shared receives with blocks of this size; made on first use.
  static Result<SharedReceives*> of(Device& device, std::uint32_t block_bytes);
  SharedReceives(const SharedReceives&) = delete;
  SharedReceives& operator=(const SharedReceives&) = delete;
  ~SharedReceives() override;

  ibv_srq* get() const { return srq_.get(); }
  Device::Queue& queue() { return *queue_; }
  std::uint32_t block_bytes() const { return block_bytes_; }

  // Messages that this queue pair takes are for that channel.
  void join(std::uint32_t qp_number, BlockUser& channel) { channels_[qp_number] = &channel; }
  // The queue pair takes nothing more and is about to be destroyed.
  void leave(std::uint32_t qp_number);

  // SharedCompletions
  std::size_t poll(std::size_t most) override;
  void refill() override;
  SharedReceivesStats stats() const override;

  // Takes and gives back blocks of this size, for any use.
  std::unique_ptr<ChannelBlock> take_spare();
  void give_back(std::unique_ptr<ChannelBlock> block);

 private:
  struct Received {
    BlockUser* channel = nullptr;  // null: the channel left
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
  std::vector<std::unique_ptr<ChannelBlock>> slots_;  // indexed by the wr_id of their receives
  SharedReceiveQueue srq_;
  std::vector<std::uint32_t> empty_;
  std::vector<std::unique_ptr<ChannelBlock>> spare_;
  std::deque<Received> arrived_;
  std::vector<Received> taken_;                             // by the current poll()
  std::unordered_map<std::uint32_t, BlockUser*> channels_;  // by queue pair number
  std::uint64_t received_ = 0, ran_low_ = 0;
};

}  // namespace weir::rdma
