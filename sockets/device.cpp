#include "sockets/device.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include "link/memory/file_size_limit.hpp"
#include "sockets/calls/system_calls.hpp"
#include "sockets/settings.hpp"
#include "sockets/table.hpp"

namespace weir::sockets {
namespace {

constexpr std::uint8_t port = 1;
constexpr int most_pieces = 8;  // per work request
constexpr std::chrono::milliseconds longest_write{1000};

}  // namespace

// Only Weir's libibverbs.so.1 has it (verbs/ibv/private_link.hpp).
void device_ends_silently() {
  if (auto* const call = reinterpret_cast<void (*)()>(::dlsym(RTLD_DEFAULT, "weir_end_silently"))) call();
}

Device* Device::open(std::uint32_t ring_bytes, std::string& why) {
  const auto device = new Device;  // kept even if a later step fails: nobody tries again
  device->ring_bytes_ = ring_bytes;
  keep_environment();
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list != nullptr && count > 0) device->context_ = ibv_open_device(list[0]);
  if (list != nullptr) ibv_free_device_list(list);
  if (device->context_ == nullptr) {
    why = "no RDMA device can be opened";
    return nullptr;
  }
  ibv_gid gid{};
  device->pd_ = ibv_alloc_pd(device->context_);
  if (device->pd_ == nullptr || ibv_query_gid(device->context_, port, 0, &gid) != 0) {
    why = "the RDMA device gives no protection domain or has no GID";
    return nullptr;
  }
  std::memcpy(device->gid_.data(), gid.raw, sizeof gid.raw);
  device->everything_ =
      ibv_reg_mr(device->pd_, nullptr, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
  if (device->everything_ == nullptr) {
    why = "the RDMA device cannot read memory on demand";
    return nullptr;
  }
  return device;
}

bool Device::map(Chunk& chunk, std::size_t rings) const {
  const std::size_t bytes = rings * ring_bytes_;
  if (!link::file_may_have(bytes)) return false;
  const int file = out_of_the_way(::memfd_create("weir-sockets", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file < 0) return false;
  void* at = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(bytes)) == 0 &&
      system_calls().fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
    at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) {
    close_aside(file);
    return false;
  }
  chunk.base = static_cast<std::byte*>(at);
  chunk.taken.assign(rings / 64, 0);
  return true;
}

std::byte* Device::take_ring() {
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    Chunk& chunk = chunks_[i];
    if (chunk.base == nullptr && !map(chunk, rings_of(i))) return nullptr;
    const auto word = std::ranges::find_if(chunk.taken, [](std::uint64_t bits) { return ~bits != 0; });
    if (word == chunk.taken.end()) continue;
    const auto free = static_cast<std::size_t>(__builtin_ctzll(~*word));
    *word |= std::uint64_t{1} << free;
    return chunk.base + (static_cast<std::size_t>(word - chunk.taken.begin()) * 64 + free) * ring_bytes_;
  }
  return nullptr;
}

void Device::give_ring(const std::byte* ring) {
  for (Chunk& chunk : chunks_) {
    if (chunk.base == nullptr || ring < chunk.base ||
        ring >= chunk.base + chunk.taken.size() * 64 * ring_bytes_)
      continue;
    const std::size_t number = static_cast<std::size_t>(ring - chunk.base) / ring_bytes_;
    chunk.taken[number / 64] &= ~(std::uint64_t{1} << (number % 64));
  }
}

// False: the NIC has no more completion queues.
bool Device::find_completions(NearLink& link) {
  constexpr int entries = 4;  // a link's requests
  const auto make = [&](std::size_t links) -> std::shared_ptr<Completions> {
    ibv_cq* const cq = ibv_create_cq(context_, entries * static_cast<int>(links), nullptr, nullptr, 0);
    return cq != nullptr ? std::make_shared<Completions>(cq) : nullptr;
  };
  if (own_queues_ < most_own_queues && (link.completions_ = make(1))) {
    ++own_queues_;
    return true;
  }
  link.shares_completions_ = true;
  std::erase_if(shared_queues_, [](const auto& one) { return one.expired(); });
  const auto with_room = std::ranges::find_if(shared_queues_, [](const auto& one) {
    return static_cast<std::size_t>(one.use_count()) < links_a_shared_queue;
  });
  if (with_room != shared_queues_.end()) {
    link.completions_ = with_room->lock();
  } else if ((link.completions_ = make(links_a_shared_queue))) {
    shared_queues_.push_back(link.completions_);
  }
  return link.completions_ != nullptr;
}

std::unique_ptr<NearLink> Device::make_link() {
  std::unique_ptr<NearLink> link(new NearLink(*this));
  link->ring_ = take_ring();
  if (link->ring_ == nullptr) return nullptr;
  link->region_ = ibv_reg_mr(pd_, link->ring_, ring_bytes_,
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (link->region_ == nullptr || !find_completions(*link)) return nullptr;
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = link->completions_->cq;
  init.cap.max_send_wr = 4;
  init.cap.max_recv_wr = 1;
  init.cap.max_send_sge = most_pieces;
  init.cap.max_recv_sge = 1;
  init.qp_type = IBV_QPT_RC;
  link->qp_ = ibv_create_qp(pd_, &init);
  if (link->qp_ == nullptr) return nullptr;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (ibv_modify_qp(link->qp_, &attributes,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
    return nullptr;
  link->offer_ = {.qpn = link->qp_->qp_num,
                  .rkey = link->region_->rkey,
                  .ring_bytes = ring_bytes_,
                  .ring_address = reinterpret_cast<std::uintptr_t>(link->ring_),
                  .gid = gid_};
  return link;
}

NearLink::~NearLink() {
  if (qp_ != nullptr) {
    std::unique_lock<SectionMutex> lock;  // another link may be about to keep a completion for this one
    if (shares_completions_) lock = std::unique_lock(completions_->mutex);
    ibv_destroy_qp(qp_);  // from here on the peer's writes fail, so the ring may be given to another link
  }
  if (completions_ && !shares_completions_) --device_.own_queues_;
  completions_.reset();
  if (region_ != nullptr) ibv_dereg_mr(region_);
  if (ring_ != nullptr) device_.give_ring(ring_);
}

bool NearLink::connect(const Offer& peer) {
  peer_ = peer;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = peer.qpn;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = port;
  attributes.ah_attr.grh.hop_limit = 1;
  std::memcpy(attributes.ah_attr.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  if (ibv_modify_qp(qp_, &attributes,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
    return false;
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;
  attributes.retry_cnt = 7;
  attributes.rnr_retry = 7;
  attributes.max_rd_atomic = 1;
  return ibv_modify_qp(qp_, &attributes,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

// If a WRITE is the only outstanding request and the peer was last on this CPU, the software NIC yields
// after it, for programs that watch their memory. Our receivers sleep or yield by themselves. When others
// want the CPU too, that yield costs both sides a time slice for each message. So we keep an empty WRITE
// without a completion outstanding.
bool NearLink::execute(ibv_send_wr& request, bool keep_cpu) {
  ibv_send_wr* bad = nullptr;
  ibv_send_wr another{};
  another.wr_id = request.wr_id = reinterpret_cast<std::uintptr_t>(this);
  another.opcode = IBV_WR_RDMA_WRITE;
  another.wr.rdma = request.wr.rdma;
  request.send_flags = IBV_SEND_SIGNALED;
  const bool adds = keep_cpu && !another_outstanding_;
  request.next = adds ? &another : nullptr;
  another_outstanding_ = adds;
  if (ibv_post_send(qp_, &request, &bad) != 0) return false;
  std::chrono::steady_clock::time_point begun{};
  for (unsigned tries = 0;; ++tries) {
    if (const auto status = completed()) return *status == IBV_WC_SUCCESS;
    // The software NIC completes before ibv_post_send() returns, unless the peer is not ready.
    if (tries < 64) continue;
    const auto now = std::chrono::steady_clock::now();
    if (begun == std::chrono::steady_clock::time_point{}) begun = now;
    if (now - begun > longest_write) return false;
    ::usleep(50);
  }
}

std::optional<ibv_wc_status> NearLink::completed() {
  ibv_wc completion{};
  std::unique_lock<SectionMutex> lock;
  if (shares_completions_) {
    lock = std::unique_lock(completions_->mutex);
    if (kept_) return *std::exchange(kept_, std::nullopt);
  }
  const int found = ibv_poll_cq(completions_->cq, 1, &completion);
  if (found == 0) return std::nullopt;
  if (found < 0) return IBV_WC_GENERAL_ERR;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): requests are numbered by their link
  auto* const of = reinterpret_cast<NearLink*>(completion.wr_id);
  if (of == this) return completion.status;
  of->kept_ = completion.status;
  return std::nullopt;
}

bool NearLink::write(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes, std::uint64_t place,
                     bool keep_cpu) {
  std::size_t at = 0;
  while (at < pieces.size() && skip >= pieces[at].iov_len) skip -= pieces[at++].iov_len;
  while (bytes > 0) {
    std::array<ibv_sge, most_pieces> list;
    int count = 0;
    std::size_t together = 0;
    for (; count < most_pieces && bytes > 0 && at < pieces.size();) {
      const auto& piece = pieces[at];
      const std::size_t here = std::min(piece.iov_len - skip, bytes);
      if (here > 0)
        list[static_cast<std::size_t>(count++)] = {
            .addr = reinterpret_cast<std::uintptr_t>(piece.iov_base) + skip,
            .length = static_cast<std::uint32_t>(here),
            .lkey = device_.everything_->lkey};
      bytes -= here;
      together += here;
      skip += here;
      if (skip == piece.iov_len) {
        ++at;
        skip = 0;
      }
    }
    if (together == 0) return false;
    ibv_send_wr request{};
    request.sg_list = list.data();
    request.num_sge = count;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma.remote_addr = peer_.ring_address + place;
    request.wr.rdma.rkey = peer_.rkey;
    if (!execute(request, keep_cpu)) return false;
    place += together;
  }
  return true;
}

bool NearLink::reaches_peer() {
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma.remote_addr = peer_.ring_address;
  request.wr.rdma.rkey = peer_.rkey;
  return execute(request);
}

bool NearLink::read(void* into, std::size_t bytes, std::uint64_t place) {
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(into),
                .length = static_cast<std::uint32_t>(bytes),
                .lkey = device_.everything_->lkey};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = peer_.ring_address + place;
  request.wr.rdma.rkey = peer_.rkey;
  return execute(request);
}

}  // namespace weir::sockets
