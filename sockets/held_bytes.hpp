// Bytes that were read from TCP before their turn: the ring's bytes come first (carrier.hpp). There are at
// most as many as one read of the program may get. The receive gate guards them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sockets/calls/pieces.hpp"

namespace weir::sockets {

class HeldBytes {
 public:
  bool empty() const { return bytes_.empty(); }
  std::size_t size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }

  // Keeps `bytes` of `pieces`, starting at `skip`.
  void keep(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + bytes);
    bytes_.resize(before + copy_out_of(pieces, skip, bytes_.data() + before, bytes));
  }
  // Takes the first `bytes` held, or as many as `pieces` has room for.
  std::size_t take(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes, bool peek) {
    const std::size_t taken = copy_into(pieces, skip, bytes_.data(), bytes);
    if (!peek) bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(taken));
    return taken;
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace weir::sockets
