#include "side.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

namespace weir::verbs_test {

SideMemory::SideMemory(MemoryKind kind, std::size_t bytes) : size_(bytes) {
  if (kind == MemoryKind::shared) {
    file_ = ::memfd_create("side", MFD_CLOEXEC);
    if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(bytes)) != 0) std::abort();
  }
  const int flags = file_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file_, 0);
  if (data == MAP_FAILED) std::abort();
  data_ = static_cast<std::uint8_t*>(data);
}

SideMemory::~SideMemory() {
  ::munmap(data_, size_);
  if (file_ >= 0) ::close(file_);
}

bool SideMemory::cut_file_to(std::size_t bytes) const {
  return ::ftruncate(file_, static_cast<off_t>(bytes)) == 0;
}

Side::Side(MemoryKind kind, std::size_t bytes)
    : memory(kind, bytes),
      context(open_device()),
      pd(ibv_alloc_pd(context.get())),
      mr(register_memory(pd.get(), memory.bytes().data(), bytes)),
      channel(ibv_create_comp_channel(context.get())),
      cq(ibv_create_cq(context.get(), 2 * queue_depth, nullptr, channel.get(), 0)) {
  ibv_qp_init_attr init = init_attr(cq.get(), {.cap = {.max_send_wr = queue_depth,
                                                       .max_recv_wr = queue_depth,
                                                       .max_send_sge = 1,
                                                       .max_recv_sge = 1,
                                                       .max_inline_data = 64}});
  qp.reset(ibv_create_qp(pd.get(), &init));
  if (!mr || !cq || !qp) std::abort();
}

int Side::post(ibv_wr_opcode opcode, std::uint64_t id, std::size_t length, const SideAddress& to,
               std::uint32_t imm, unsigned flags) {
  ibv_sge piece = sge(0, length);
  ibv_send_wr wr = send_wr(id, piece, opcode, flags);
  wr.imm_data = imm;
  wr.wr.rdma = {to.addr, to.rkey};
  return verbs_test::post(qp.get(), wr);
}

void fill(std::span<std::uint8_t> bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    const auto word = static_cast<std::uint32_t>(random());
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(4, bytes.size() - at));
  }
}

std::uint64_t checksum(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

}  // namespace weir::verbs_test
