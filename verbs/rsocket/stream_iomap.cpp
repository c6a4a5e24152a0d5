// Mapped buffers (riomap, riounmap, riowrite): the peer writes straight into memory of the application.
//
// A mapping for writing takes an entry of the peer's table, which the peer sized (RDMA_IOMAPSIZE). It is
// announced in the stream, before the next bytes: who reads those may use it.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "verbs/rsocket/stream_pipe.hpp"

namespace weir::rsocket {

std::expected<std::uint64_t, int> Pipe::map(void* buffer, std::size_t size, int protection,
                                            std::int64_t offset) {
  if ((protection & ~PROT_WRITE) != 0 || size == 0 || size > UINT32_MAX) return std::unexpected(EINVAL);
  const bool remote = (protection & PROT_WRITE) != 0;
  std::int64_t index = -1;
  if (remote) {
    const auto free = std::find(peers_iomap_taken_.begin(), peers_iomap_taken_.end(), false);
    if (free == peers_iomap_taken_.end()) return std::unexpected(ENOMEM);
    index = free - peers_iomap_taken_.begin();
  }
  const int access = IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0);
  ibv_mr* mr = ibv_reg_mr(memory_->pd(), buffer, size, access);
  if (mr == nullptr) return std::unexpected(errno);
  const std::uint64_t at =
      offset < 0 ? reinterpret_cast<std::uintptr_t>(buffer) : static_cast<std::uint64_t>(offset);
  if (remote) peers_iomap_taken_[static_cast<std::size_t>(index)] = true;
  (remote ? unannounced_ : mappings_).push_back({mr, at, index});
  return at;
}

int Pipe::unmap(void* buffer, std::size_t size) {
  for (auto* list : {&mappings_, &unannounced_}) {
    const auto found = std::find_if(list->begin(), list->end(), [&](const Mapping& mapping) {
      return mapping.mr->addr == buffer && mapping.mr->length == size;
    });
    if (found == list->end()) continue;
    // The entry stays in the peer's table until another mapping takes its place; who uses it meanwhile breaks
    // the connection, as with any memory that is not registered.
    if (found->index >= 0) peers_iomap_taken_[static_cast<std::size_t>(found->index)] = false;
    ibv_dereg_mr(found->mr);
    list->erase(found);
    return 0;
  }
  return EINVAL;
}

bool Pipe::announce_mapping() {
  if (!begun_ || broken_ || data_in_flight_ >= send_slots_ || !flow_.has_credit()) return false;
  const Mapping& mapping = unannounced_.front();
  IomapEntry entry{mapping.offset,
                   {reinterpret_cast<std::uintptr_t>(mapping.mr->addr), mapping.mr->rkey,
                    static_cast<std::uint32_t>(mapping.mr->length)}};
  if (swap_) entry = swapped(entry);
  const ibv_sge piece{reinterpret_cast<std::uintptr_t>(&entry), sizeof entry, 0};
  const auto index = static_cast<std::uint64_t>(mapping.index);
  const std::uint64_t table = peers_list_.address + peers_list_.length * sizeof(RemoteBuffer);
  flow_.take_credit();
  post_write(&piece, true, table + index * sizeof entry, peers_list_.key,
             Immediate{Op::iomap, static_cast<std::uint32_t>(index)}, Kind::data, 0);
  mappings_.splice(mappings_.end(), unannounced_, unannounced_.begin());
  return true;
}

std::expected<std::size_t, int> Pipe::send_to_mapping(Pieces& from, std::uint64_t offset) {
  const auto table = memory_->iomap();
  const auto covers = [&](const IomapEntry& entry) {
    return offset >= entry.offset && offset - entry.offset < entry.buffer.length;
  };
  const auto found = std::find_if(table.begin(), table.end(), covers);
  if (found == table.end()) return std::unexpected(EINVAL);
  const IomapEntry entry = *found;  // once: the peer may be writing it
  if (!covers(entry)) return std::unexpected(EINVAL);
  if (broken_ || data_in_flight_ >= send_slots_) return 0;
  const std::uint64_t skip = offset - entry.offset;
  const std::size_t most = std::min<std::uint64_t>(from.left(), entry.buffer.length - skip);
  const auto place = ring_room(most);
  if (place.empty()) return 0;
  from.copy_to(place);
  const auto length = static_cast<std::uint32_t>(place.size());
  const ibv_sge piece{reinterpret_cast<std::uintptr_t>(place.data()), length, memory_->send_ring_key()};
  ring_at_ = (ring_at_ + length) % memory_->send_ring().size();
  ring_used_ += length;
  post_write(&piece, false, entry.buffer.address + skip, entry.buffer.key, std::nullopt, Kind::data, length);
  return length;
}

}  // namespace weir::rsocket
