#include "verbs/rsocket/stream_pipe.hpp"

#include <endian.h>

#include <array>
#include <bit>
#include <cerrno>
#include <vector>

// ThreadSanitizer does not see that what is written by WRITEs into a table is ordered with what was done
// before. It matters where both ends are in one process, as in tests: there the entry's address is one word
// to both.
#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#else
namespace {
void __tsan_acquire(void*) {}
void __tsan_release(void*) {}
}  // namespace
#endif

namespace weir::rsocket {
namespace {

constexpr std::uint32_t control_slots = 8;
constexpr std::uint32_t most_granting = control_slots - 2;  // the last two are for shutdown and disconnect
// Large enough that the cost of a message disappears in it, small enough that the peer can read one while we
// copy the next.
constexpr std::size_t largest_message = 16384;
constexpr std::uint32_t least_inline = sizeof(IomapEntry);
constexpr unsigned kind_shift = 32;

// The peer writes an entry whole before the credit message that tells of one, and not again before we have
// filled that buffer. But an earlier message may have brought us here while it writes: an entry's length is
// the last word of it that becomes visible, so one that is not zero tells that the rest is there.
__attribute__((no_sanitize("thread"))) std::optional<RemoteBuffer> take_entry(RemoteBuffer& entry) {
  const std::uint32_t length = __atomic_load_n(&entry.length, __ATOMIC_ACQUIRE);
  if (length == 0) return std::nullopt;
  __tsan_acquire(&entry);
  const RemoteBuffer buffer{entry.address, entry.key, length};
  __atomic_store_n(&entry.length, 0, __ATOMIC_RELAXED);
  return buffer;
}

}  // namespace

Pipe::Pipe(rdma_cm_id* id, const Options& options)
    : id_(id),
      flow_(options.receive_bytes, options.receive_queue),
      send_slots_(options.send_queue),
      receive_slots_(options.receive_queue),
      iomap_entries_(options.iomap_entries),
      inline_bytes_(options.inline_bytes) {}

std::expected<std::unique_ptr<Pipe>, int> Pipe::make(rdma_cm_id* id, const Options& options) {
  std::unique_ptr<Pipe> pipe(new Pipe(id, options));
  if (const int error = pipe->set_up(options); error != 0) return std::unexpected(error);
  return pipe;
}

int Pipe::set_up(const Options& options) {
  if (const int error = alarm_.open(id_->verbs); error != 0) return error;
  const std::uint32_t entries = send_slots_ + receive_slots_ + 2 * control_slots;
  cq_ = ibv_create_cq(id_->verbs, static_cast<int>(entries), nullptr, alarm_.channel(), 0);
  if (cq_ == nullptr) return errno;
  auto memory = StreamMemory::make(id_->verbs, options);
  if (!memory) return memory.error();
  memory_ = std::move(*memory);
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq_;
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = 1;
  attr.cap.max_send_wr = send_slots_ + control_slots;
  attr.cap.max_recv_wr = receive_slots_ + control_slots;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.cap.max_inline_data = std::max(inline_bytes_, least_inline);
  if (rdma_create_qp(id_, memory_->pd(), &attr) != 0) return errno;
  return post_receives(receive_slots_ + control_slots);
}

Pipe::~Pipe() {
  if (id_->qp != nullptr) rdma_destroy_qp(id_);
  for (auto* list : {&mappings_, &unannounced_}) {
    for (const Mapping& mapping : *list) ibv_dereg_mr(mapping.mr);
  }
  memory_.reset();
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
}

Greeting Pipe::greeting() const {
  Greeting mine;
  mine.credits = static_cast<std::uint16_t>(receive_slots_);
  mine.big_endian = std::endian::native == std::endian::big;
  mine.iomap_entries = iomap_entries_;
  mine.buffer_list = {reinterpret_cast<std::uintptr_t>(memory_->buffer_list()), memory_->remote_key(),
                      buffer_list_entries};
  const auto ring = memory_->receive_ring();
  mine.first_buffer = {reinterpret_cast<std::uintptr_t>(ring.data()), memory_->remote_key(),
                       static_cast<std::uint32_t>(ring.size() / 2)};
  return mine;
}

void Pipe::begin(const Greeting& peers) {
  flow_.begin(peers);
  swap_ = peers.big_endian != (std::endian::native == std::endian::big);
  peers_list_ = peers.buffer_list;
  peers_iomap_entries_ = peers.iomap_entries;
  peers_iomap_taken_.assign(peers_iomap_entries_, false);
  begun_ = true;
}

int Pipe::post_receives(std::uint32_t count) {
  if (count == 0) return 0;
  ibv_recv_wr request{};  // an immediate takes a receive, and no memory of it
  request.wr_id = static_cast<std::uint64_t>(Kind::receive) << kind_shift;
  for (; count > 0; --count) {
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(id_->qp, &request, &bad); error != 0) return error;
  }
  return 0;
}

bool Pipe::post_write(const ibv_sge* piece, bool inlined, std::uint64_t address, std::uint32_t key,
                      std::optional<Immediate> immediate, Kind kind, std::uint32_t ring_bytes) {
  ibv_send_wr request{};
  request.wr_id = static_cast<std::uint64_t>(kind) << kind_shift | ring_bytes;
  request.sg_list = const_cast<ibv_sge*>(piece);
  request.num_sge = piece != nullptr ? 1 : 0;
  request.opcode = immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  if (immediate) request.imm_data = htobe32(pack(*immediate));
  request.send_flags = inlined ? IBV_SEND_INLINE : 0;
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = key;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(id_->qp, &request, &bad) != 0) {
    broken_ = true;
    return false;
  }
  ++(kind == Kind::control ? control_in_flight_ : data_in_flight_);
  return true;
}

bool Pipe::progress() {
  bool moved = false;
  std::array<ibv_wc, 32> batch;
  for (;;) {
    const int count = ibv_poll_cq(cq_, static_cast<int>(batch.size()), batch.data());
    if (count < 0) broken_ = true;
    if (count <= 0) break;
    moved = true;
    for (int i = 0; i < count; ++i) completed(batch[static_cast<std::size_t>(i)]);
    if (static_cast<std::size_t>(count) < batch.size()) break;
  }
  if (to_post_ > 0 && !broken_) {
    if (post_receives(to_post_) != 0) broken_ = true;
    to_post_ = 0;
  }
  give_grants();
  return moved;
}

void Pipe::completed(const ibv_wc& completion) {
  switch (static_cast<Kind>(completion.wr_id >> kind_shift)) {
    case Kind::receive:
      if (completion.status == IBV_WC_SUCCESS) {
        ++to_post_;
        return received(completion);
      }
      break;
    case Kind::data:
      --data_in_flight_;
      ring_used_ -= static_cast<std::uint32_t>(completion.wr_id);
      break;
    case Kind::control:
      --control_in_flight_;
      break;
  }
  if (completion.status != IBV_WC_SUCCESS) broken_ = true;
}

void Pipe::received(const ibv_wc& completion) {
  const auto immediate =
      (completion.wc_flags & IBV_WC_WITH_IMM) != 0 ? unpack(be32toh(completion.imm_data)) : std::nullopt;
  switch (immediate ? flow_.arrived(*immediate) : StreamFlow::Arrival::violation) {
    case StreamFlow::Arrival::credit:
      buffer_may_be_there_ = true;
      break;
    case StreamFlow::Arrival::data:
    case StreamFlow::Arrival::iomap:
    case StreamFlow::Arrival::keepalive:
      break;
    case StreamFlow::Arrival::shutdown:
      peer_shut_down_ = true;
      break;
    case StreamFlow::Arrival::disconnect:
      peer_shut_down_ = peer_disconnected_ = true;
      break;
    case StreamFlow::Arrival::violation:
      broken_ = true;
      break;
  }
}

void Pipe::look_for_buffer() {
  if (!buffer_may_be_there_ || !flow_.wants_buffer()) return;
  const auto buffer = take_entry(memory_->buffer_list()[flow_.next_entry()]);
  buffer_may_be_there_ = buffer.has_value();
  if (buffer) flow_.give_buffer(*buffer);
}

void Pipe::give_grants() {
  while (begun_ && !broken_ && !peer_disconnected_ && control_in_flight_ < most_granting) {
    const auto grant = flow_.grant();
    if (!grant) return;
    const Immediate message{Op::credit, grant->credits};
    if (!grant->buffer) {
      post_write(nullptr, false, 0, 0, message, Kind::control, 0);
      continue;
    }
    RemoteBuffer buffer{
        reinterpret_cast<std::uintptr_t>(memory_->receive_ring().data()) + grant->buffer->offset,
        memory_->remote_key(), grant->buffer->length};
    if (swap_) buffer = swapped(buffer);
    const ibv_sge piece{reinterpret_cast<std::uintptr_t>(&buffer), sizeof buffer, 0};
    const std::uint64_t entry = peers_list_.address + grant->buffer->peers_entry * sizeof buffer;
    __tsan_release(reinterpret_cast<void*>(entry));
    post_write(&piece, true, entry, peers_list_.key, message, Kind::control, 0);
  }
}

std::span<std::byte> Pipe::ring_room(std::size_t most) const {
  const auto ring = memory_->send_ring();
  return ring.subspan(ring_at_, std::min({most, ring.size() - ring_used_, ring.size() - ring_at_}));
}

std::size_t Pipe::room() {
  if (!begun_ || broken_ || data_in_flight_ >= send_slots_) return 0;
  look_for_buffer();
  return ring_room(std::min<std::size_t>(flow_.sendable(), largest_message)).size();
}

std::size_t Pipe::send(Pieces& from) {
  if (room() == 0 || from.left() == 0) return 0;
  const std::size_t most = std::min({from.left(), std::size_t{flow_.sendable()}, largest_message});
  // What is copied at once leaves the ring as it is. What is cut off by the ring's end must go through the
  // ring, so that the end is passed, however little it is.
  const bool inlined = most <= inline_bytes_ && from.front().size() >= most;
  const std::size_t bytes = inlined ? most : ring_room(most).size();
  const auto length = static_cast<std::uint32_t>(bytes);
  ibv_sge piece{0, length, 0};
  if (inlined) {
    piece.addr = reinterpret_cast<std::uintptr_t>(from.front().data());
    from.skip(bytes);
  } else {
    const auto place = ring_room(bytes);
    from.copy_to(place);
    piece.addr = reinterpret_cast<std::uintptr_t>(place.data());
    piece.lkey = memory_->send_ring_key();
    ring_at_ = (ring_at_ + bytes) % memory_->send_ring().size();
    ring_used_ += bytes;
  }
  const auto to = flow_.take(length);
  post_write(&piece, inlined, to.address, to.key, Immediate{Op::data, length}, Kind::data,
             inlined ? 0 : length);
  return bytes;
}

bool Pipe::send_control(Control what) {
  if (broken_ || control_in_flight_ == control_slots) return false;
  return post_write(nullptr, false, 0, 0, Immediate{Op::control, static_cast<std::uint32_t>(what)},
                    Kind::control, 0);
}

std::size_t Pipe::read(Pieces& into, bool peek) {
  const std::uint32_t bytes = static_cast<std::uint32_t>(std::min<std::size_t>(flow_.unread(), into.left()));
  const auto ring = memory_->receive_ring();
  std::uint32_t done = 0;
  while (done < bytes) {
    const auto piece = flow_.piece(done);
    const std::uint32_t length = std::min(piece.length, bytes - done);
    into.copy_from(ring.subspan(piece.offset, length));
    done += length;
  }
  if (!peek && bytes > 0) {
    flow_.consume(bytes);
    give_grants();
  }
  return bytes;
}

}  // namespace weir::rsocket
