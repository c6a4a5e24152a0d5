// A client's transport that the input controls: which bytes arrive in which pieces, how much it takes before
// it is full, and when the connection ends. Everything that the client writes goes into a ledger.
#pragma once

#include <algorithm>
#include <asio/buffer.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/transport/transport.hpp"
#include "tests/fuzz/rpc_ledgers.hpp"

namespace weir::fuzz {

class HeldTransport final : public rpc::Transport {
 public:
  void start(rpc::TransportUser& user) override { user_ = &user; }
  std::size_t write(std::span<const asio::const_buffer> pieces) override {
    std::size_t taken = 0;
    for (const asio::const_buffer& piece : pieces) {
      const std::size_t part = std::min(piece.size(), room_);
      room_ -= part;
      taken += part;
      ledger_.sent({static_cast<const std::byte*>(piece.data()), part});
      full_ |= part < piece.size();
    }
    return taken;
  }
  void read_on(bool) override {}
  bool end_output() override { return false; }
  void close() override { user_ = nullptr; }
  std::string peer() const override { return "fuzz"; }

  // As much as comes at once, to where the user wants it and behind that.
  void deliver(std::string_view text) {
    std::span<const std::byte> bytes = rpc::as_bytes(text);
    while (user_ != nullptr && !bytes.empty()) {
      const std::span<std::byte> wanted = user_->wanted();
      const std::size_t in_place = std::min(bytes.size(), wanted.size());
      std::ranges::copy(bytes.first(in_place), wanted.begin());
      if (in_place > 0) user_->filled(in_place);
      bytes = bytes.subspan(in_place);
      if (user_ == nullptr || bytes.empty()) break;
      // A copy that ends where they end: reading past it is found.
      const std::vector<std::byte> copy(bytes.begin(), bytes.end());
      user_->received(copy);
      bytes = {};
    }
  }
  // In memory that the user may keep.
  void deliver_kept(std::string_view text) {
    if (user_ == nullptr || text.empty()) return;
    rpc::Buffer buffer = rpc::Buffer::copy_of(text);
    if (!user_->keep(buffer) && user_ != nullptr) user_->received(buffer.span());
  }
  void end_round() {
    if (user_ != nullptr) user_->round_ended();
  }
  void end() {
    if (rpc::TransportUser* const user = std::exchange(user_, nullptr); user != nullptr)
      user->ended({rpc::Errc::connection_lost, "the input says so"});
  }
  void room(std::size_t bytes) {
    room_ = bytes;
    if (bytes > 0 && std::exchange(full_, false) && user_ != nullptr) user_->writable();
  }
  ClientLedger& ledger() { return ledger_; }

 private:
  rpc::TransportUser* user_ = nullptr;
  ClientLedger ledger_;
  std::size_t room_ = SIZE_MAX;
  bool full_ = false;
};

}  // namespace weir::fuzz
