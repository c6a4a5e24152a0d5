// A stream's memory: the table the peer writes addresses into, the receive ring behind it, and the send ring.
//
// It lies in one shared file where a descriptor for it can be had: the NIC then copies straight into the
// peer's, with no system call. Else it is private memory, which works the same and is slower. Being shared it
// is also safe across fork(): no page of it is ever copied under the NIC.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>

#include "link/unique_fd.hpp"
#include "verbs/rsocket/options.hpp"
#include "verbs/rsocket/stream_wire.hpp"

namespace weir::rsocket {

class StreamMemory {
 public:
  // The error is an errno.
  static std::expected<std::unique_ptr<StreamMemory>, int> make(ibv_context* device, const Options& options);
  ~StreamMemory();
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;

  // This stream's own: what its peer may write answers through its queue pair only.
  ibv_pd* pd() const { return pd_; }
  RemoteBuffer* buffer_list() const { return reinterpret_cast<RemoteBuffer*>(base_); }
  std::span<IomapEntry> iomap() const;
  std::span<std::byte> receive_ring() const { return {base_ + table_bytes_, receive_bytes_}; }
  std::span<std::byte> send_ring() const { return {base_ + remote_bytes_, send_bytes_}; }
  std::uint32_t remote_key() const { return remote_->rkey; }  // of table and receive ring
  std::uint32_t send_ring_key() const { return sending_->lkey; }

 private:
  StreamMemory() = default;
  int map(std::size_t bytes);

  link::UniqueFd file_;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0, table_bytes_ = 0, remote_bytes_ = 0;
  std::size_t receive_bytes_ = 0, send_bytes_ = 0, iomap_entries_ = 0;
  ibv_pd* pd_ = nullptr;
  ibv_mr* remote_ = nullptr;
  ibv_mr* sending_ = nullptr;
};

}  // namespace weir::rsocket
