// A transport that accepts as much as it is told to, and records what it accepted and from where.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "rpc/transport/transport.hpp"

namespace weir::rpc::testing_support {

class RecordingTransport final : public Transport {
 public:
  void start(TransportUser& user) override { user_ = &user; }
  std::size_t write(std::span<const asio::const_buffer> pieces) override {
    if (fails) throw std::bad_alloc();
    std::size_t offered = 0;
    for (const asio::const_buffer& piece : pieces) {
      offered += piece.size();
      if (piece.data() == block_ && piece.size() > 0) block_was_written = true;
      if (room > 0) written_from.insert(piece.data());
    }
    const std::size_t taken = std::min(offered, room);
    std::size_t left = taken;
    for (const asio::const_buffer& piece : pieces) {
      const std::size_t part = std::min(left, piece.size());
      all.append(static_cast<const char*>(piece.data()), part);
      left -= part;
    }
    room -= taken;
    writes.push_back(taken);
    return taken;
  }
  Buffer block(std::size_t size) override {
    if (!has_blocks) return {};
    ++blocks_out;
    auto memory = std::make_unique<std::byte[]>(size);
    block_ = memory.get();
    return {{memory.release(), size},
            [](void* self, std::byte* data, std::size_t) {
              delete[] data;
              --static_cast<RecordingTransport*>(self)->blocks_out;
            },
            this};
  }
  void read_on(bool) override {}
  bool end_output() override { return false; }
  void close() override {}
  std::string peer() const override { return "recording"; }

  TransportUser& user() { return *user_; }
  std::size_t written() const {
    std::size_t bytes = 0;
    for (const std::size_t write : writes) bytes += write;
    return bytes;
  }

  std::size_t room = SIZE_MAX;
  std::vector<std::size_t> writes;
  std::string all;  // bytes of them
  std::set<const void*> written_from;
  bool has_blocks = false, block_was_written = false;
  bool fails = false;
  int blocks_out = 0;

 private:
  TransportUser* user_ = nullptr;
  const void* block_ = nullptr;
};

}  // namespace weir::rpc::testing_support
