#include "sockets/far_link.hpp"

#include <endian.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "sockets/calls/pieces.hpp"
#include "sockets/settings.hpp"
#include "sockets/waiter.hpp"

namespace weir::sockets {
namespace {

constexpr std::size_t slot_bytes = 128;
static_assert(slot_bytes >= far_message_bytes);

std::byte* map(std::size_t bytes) {
  // Shared, so that a forked child does not copy pages that the device writes.
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

}  // namespace

std::unique_ptr<FarLink> FarLink::make(Table& table, const Table::Place& place, rdma_cm_id* id,
                                       FarArrivals& arrivals, std::uint32_t ring_bytes) {
  std::unique_ptr<FarLink> link(new FarLink(table, place, id, arrivals, ring_bytes));
  if (!link->prepare()) return nullptr;
  link->owns_id_ = true;
  return link;
}

bool FarLink::prepare() {
  mapped_bytes_ = ring_bytes_ + receives * slot_bytes;
  ring_ = map(mapped_bytes_);
  const auto seat = arrivals_.join(*this, id_->verbs, mine_.service.load());
  if (!seat) return false;
  number_ = seat->number;
  send_cq_ = ibv_create_cq(id_->verbs, sends, nullptr, nullptr, 0);
  registered_.pd = ibv_alloc_pd(id_->verbs);
  if (ring_ == nullptr || send_cq_ == nullptr || registered_.pd == nullptr) return false;
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = seat->queue;
  init.cap = {.max_send_wr = sends,
              .max_recv_wr = receives,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = far_message_bytes};
  init.qp_type = IBV_QPT_RC;
  if (rdma_create_qp(id_, registered_.pd, &init) != 0) return false;
  // A stopped peer is treated as TCP does: we give it up after minutes, not seconds.
  std::uint8_t ack_timeout = 25;
  (void)rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout, sizeof ack_timeout);
  registered_.ring =
      ibv_reg_mr(registered_.pd, ring_, ring_bytes_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  registered_.slots =
      ibv_reg_mr(registered_.pd, ring_ + ring_bytes_, receives * slot_bytes, IBV_ACCESS_LOCAL_WRITE);
  if (registered_.ring == nullptr || registered_.slots == nullptr) return false;
  for (std::uint64_t slot = 0; slot < receives; ++slot)
    if (!post_receive(slot)) return false;
  return true;
}

FarLink::~FarLink() {
  {
    const std::scoped_lock lock(mutex_);
    lost_.store(true);  // ignore what still arrives
  }
  if (owns_id_) rdma_disconnect(id_);
  if (id_->qp != nullptr) rdma_destroy_qp(id_);  // now the ring may be reused
  if (number_ != 0) arrivals_.leave(number_);
  if (send_cq_ != nullptr) ibv_destroy_cq(send_cq_);
  for (ibv_mr* region : {registered_.ring, registered_.slots, registered_.sent})
    if (region != nullptr) ibv_dereg_mr(region);
  if (registered_.pd != nullptr) ibv_dealloc_pd(registered_.pd);
  if (ring_ != nullptr) ::munmap(ring_, mapped_bytes_);
  if (sent_ != nullptr) ::munmap(sent_, greeting_->ring_bytes);
  if (owns_id_) rdma_destroy_id(id_);
}

bool FarLink::post_receive(std::uint64_t slot) {
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(ring_ + ring_bytes_ + slot * slot_bytes),
                .length = slot_bytes,
                .lkey = registered_.slots->lkey};
  ibv_recv_wr request{};
  request.wr_id = number_ * receives + slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(id_->qp, &request, &bad) == 0;
}

bool FarLink::post(ibv_send_wr& request) {
  ibv_send_wr* bad = nullptr;
  request.send_flags |= IBV_SEND_SIGNALED;
  if (stopped_) return false;
  if (ibv_post_send(id_->qp, &request, &bad) != 0) {
    lose();
    return false;
  }
  if (outstanding_++ == 0) {
    answered_ = std::chrono::steady_clock::now();
    arrivals_.expect_answers();
  }
  return true;
}

void FarLink::reap() {
  std::array<ibv_wc, 16> done;
  for (int found; (found = ibv_poll_cq(send_cq_, done.size(), done.data())) > 0;) {
    outstanding_ -= std::min(outstanding_.load(), static_cast<std::uint32_t>(found));
    answered_ = std::chrono::steady_clock::now();
    for (int i = 0; i < found; ++i)
      if (done[static_cast<std::size_t>(i)].status != IBV_WC_SUCCESS && !stopped_) lose();
  }
}

std::chrono::nanoseconds FarLink::unanswered() {
  const std::scoped_lock lock(mutex_);
  reap();
  return outstanding_ == 0 || lost() ? std::chrono::nanoseconds(0)
                                     : std::chrono::steady_clock::now() - answered_;
}

void FarLink::stop() {
  {
    const std::scoped_lock lock(mutex_);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(id_->qp, &attributes, IBV_QP_STATE);
    stopped_ = true;
  }
  arrivals_.look();  // what came before
}

bool FarLink::greet(const Conversation& mine) {
  const std::scoped_lock lock(mutex_);
  FarBytes message = bytes_of(FarHello{.ring_bytes = ring_bytes_,
                                       .rkey = registered_.ring->rkey,
                                       .ring_address = reinterpret_cast<std::uintptr_t>(ring_),
                                       .conversation = mine});
  ibv_sge piece{
      .addr = reinterpret_cast<std::uintptr_t>(message.data()), .length = far_message_bytes, .lkey = 0};
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_INLINE;
  request.sg_list = &piece;
  request.num_sge = 1;
  return post(request);
}

bool FarLink::accept_greeting() {
  const std::scoped_lock lock(mutex_);
  sent_ = map(greeting_->ring_bytes);
  if (sent_ == nullptr) return false;
  registered_.sent = ibv_reg_mr(registered_.pd, sent_, greeting_->ring_bytes, IBV_ACCESS_LOCAL_WRITE);
  return registered_.sent != nullptr && !lost();
}

void FarLink::lose() {
  if (lost_.exchange(true)) return;
  peer_.stage.store(static_cast<std::uint32_t>(Stage::gone));
  trace("the RDMA link of a connection to another host is lost");
}

void FarLink::peer_left() {
  look();
  {
    const std::scoped_lock lock(mutex_);
    if (stopped_) return;
    lose();
  }
  ring_all(table_, mine_);
}

// `changes` is read first, so all other words are at least as new. A receiver that sees newer words with an
// older number of changes does not use them yet. Likewise `wants_tcp` before what the receiver has read.
FarWords FarLink::words() const {
  FarWords now;
  now.done = mine_.done.load() != 0;
  now.gone = static_cast<Stage>(mine_.stage.load()) == Stage::gone;
  now.receives = mine_.receives.load() != 0;
  now.changes = mine_.sender.changes.load();
  now.ring_from = mine_.sender.ring_from.load();
  now.tcp_from = mine_.sender.tcp_from.load();
  now.produced = std::max(mine_.sender.produced.load(), sent_words_.produced);
  now.want = static_cast<Want>(mine_.receiver.wants_tcp.load());
  now.changes_seen = mine_.receiver.changes_seen.load();
  now.consumed = mine_.receiver.consumed.load();
  return now;
}

bool FarLink::is_due(const FarWords& now) const {
  return now.changes != sent_words_.changes || now.ring_from != sent_words_.ring_from ||
         now.tcp_from != sent_words_.tcp_from || now.produced != sent_words_.produced ||
         now.want != sent_words_.want || now.done != sent_words_.done || now.gone != sent_words_.gone ||
         now.receives != sent_words_.receives || now.changes_seen != sent_words_.changes_seen ||
         now.consumed - sent_words_.consumed >= ring_bytes_ / 4;
}

void FarLink::publish(bool answers) {
  if (lost() || stopped_) return;
  FarWords now = words();
  if (!is_due(now) && !answers && !owes_.load()) return;
  const bool places = now.changes != sent_words_.changes || now.tcp_from != sent_words_.tcp_from;
  const bool asks = places || now.want != sent_words_.want || now.done != sent_words_.done ||
                    now.gone != sent_words_.gone || now.receives != sent_words_.receives;
  reap();
  if (outstanding_ >= sends) {
    owes_.store(true);
    return;
  }
  now.asks = asks;
  now.number = sent_words_.number + 1;
  now.heard = peers_number_;
  if (asks) asked_.store(now.number);
  if (places) placed_.store(now.number);
  FarBytes message = bytes_of(now);
  ibv_sge piece{
      .addr = reinterpret_cast<std::uintptr_t>(message.data()), .length = far_message_bytes, .lkey = 0};
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_INLINE;
  request.sg_list = &piece;
  request.num_sge = 1;
  if (!post(request)) return;
  sent_words_ = now;
  owes_.store(false);
}

void FarLink::tell() {
  const std::scoped_lock lock(mutex_);
  publish(false);
}

bool FarLink::takes_more() const { return outstanding_ < sends - kept_for_words; }

bool FarLink::all_arrived() {
  const std::scoped_lock lock(mutex_);
  reap();
  return outstanding_ == 0;
}

bool FarLink::write(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes, std::uint64_t place,
                    bool /*keep_cpu*/) {
  const std::scoped_lock lock(mutex_);
  reap();
  if (lost() || sent_ == nullptr || place + bytes > greeting_->ring_bytes) return false;
  if (copy_out_of(pieces, skip, sent_ + place, bytes) != bytes) return false;
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(sent_ + place),
                .length = static_cast<std::uint32_t>(bytes),
                .lkey = registered_.sent->lkey};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = greeting_->ring_address + place;
  request.wr.rdma.rkey = greeting_->rkey;
  const bool alone = !owes_.load() && !is_due(words());
  request.opcode = alone ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  request.imm_data = alone ? htobe32(static_cast<std::uint32_t>(bytes)) : 0;
  if (!post(request)) return false;
  if (alone) sent_words_.produced += bytes;
  return true;
}

bool FarLink::read(void* into, std::size_t bytes, std::uint64_t place) {
  const std::scoped_lock lock(mutex_);
  if (lost() || sent_ == nullptr || place + bytes > greeting_->ring_bytes) return false;
  std::memcpy(into, sent_ + place, bytes);
  return true;
}

bool FarLink::take_words(const FarWords& words) {
  if (words.number != peers_number_ + 1 || words.heard > sent_words_.number || words.heard < heard_.load() ||
      words.changes < peer_.sender.changes.load() || words.produced < peer_.sender.produced.load() ||
      words.consumed < peer_.receiver.consumed.load() ||
      words.changes_seen < peer_.receiver.changes_seen.load() || words.changes_seen > sent_words_.changes)
    return false;
  peers_number_ = words.number;
  const auto want = static_cast<std::uint64_t>(words.want);
  if (peer_.receiver.wants_tcp.load() != want) news_.service = true;
  peer_.receiver.consumed.store(words.consumed);
  peer_.receiver.changes_seen.store(words.changes_seen);
  peer_.receiver.wants_tcp.store(want);
  peer_.sender.produced.store(words.produced);
  peer_.sender.ring_from.store(words.ring_from);
  peer_.sender.tcp_from.store(words.tcp_from);
  peer_.sender.changes.store(words.changes);
  if (words.receives) peer_.receives.store(1);
  if (words.done) peer_.done.store(1);
  if (words.gone) peer_.stage.store(static_cast<std::uint32_t>(Stage::gone));
  heard_.store(words.heard);
  news_.asks |= words.asks;
  return true;
}

// False: the message makes no sense.
bool FarLink::understand(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) return false;
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    const std::uint64_t more = be32toh(completion.imm_data);
    if (!greeting_ || (peer_.sender.changes.load() & 1) == 0 || more > ring_bytes_) return false;
    peer_.sender.produced.store(peer_.sender.produced.load() + more);
    return true;
  }
  const std::span bytes(ring_ + ring_bytes_ + completion.wr_id % receives * slot_bytes,
                        std::min<std::size_t>(completion.byte_len, slot_bytes));
  if (!greeting_) {
    greeting_ = read_hello(bytes);
    greeted_.store(greeting_.has_value());
    news_.service = true;
    return greeting_.has_value();
  }
  const auto words = read_words(bytes);
  return words && take_words(*words);
}

bool FarLink::take(const ibv_wc& completion) {
  const std::scoped_lock lock(mutex_);
  if (lost() || (stopped_ && completion.status != IBV_WC_SUCCESS)) return false;
  const bool first = !news_.any;
  news_.any = true;
  if (!understand(completion) || (!stopped_ && !post_receive(completion.wr_id % receives))) {
    lose();
    news_.service = true;
  }
  return first;
}

void FarLink::answer() {
  News news;
  {
    const std::scoped_lock lock(mutex_);
    news = std::exchange(news_, {});
    if (news.asks || owes_.load()) publish(news.asks);
  }
  if (news.any) ring_all(table_, mine_);
  if (news.service) sockets::ring(table_, mine_.service.load());
}

void FarLink::look() {
  arrivals_.look();
  if (!owes_.load()) return;
  const std::scoped_lock lock(mutex_);
  publish(false);
}

}  // namespace weir::sockets
