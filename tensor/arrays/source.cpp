#include "tensor/arrays/source.hpp"

#include <utility>

namespace weir::tensor {

Source::Source(std::vector<Piece> pieces, std::shared_ptr<const void> owner) : owner_(std::move(owner)) {
  for (const Piece& each : pieces) {
    bytes_ += each.size();
    if (each.empty()) continue;
    if (!pieces_.empty() && pieces_.back().data() + pieces_.back().size() == each.data())
      pieces_.back() = {pieces_.back().data(), pieces_.back().size() + each.size()};
    else
      pieces_.push_back(each);
  }
}

std::vector<std::uint64_t> Source::sizes() const {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(pieces_.size());
  for (const Piece& each : pieces_) sizes.push_back(each.size());
  return sizes;
}

Result<std::vector<std::byte>> Source::copy() const {
  std::vector<std::byte> all;
  if (bytes_ > all.max_size()) return fail(Errc::too_much, "more bytes than fit into memory");
  all.reserve(static_cast<std::size_t>(bytes_));
  for (const Piece& each : pieces_) all.insert(all.end(), each.begin(), each.end());
  return all;
}

Result<std::span<const rdma::PeerRight>> Source::rights_for(rdma::Device& device) const {
  if (const auto known = registered_.find(&device); known != registered_.end())
    return std::span<const rdma::PeerRight>(known->second.rights);
  Registered made{device.shared_from_this(), {}};
  for (const Piece& each : pieces_) {
    const std::span<std::byte> memory(const_cast<std::byte*>(each.data()), each.size());
    auto right = rdma::PeerRight::for_all_told(device, memory);
    if (!right) return fail(Errc::device, right.error().what);
    made.rights.push_back(std::move(*right));
  }
  return std::span<const rdma::PeerRight>(registered_.emplace(&device, std::move(made)).first->second.rights);
}

}  // namespace weir::tensor
