#include "nccl/sender.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace weir::nccl {
namespace {

using rdma::Errc;
using rdma::Result;

constexpr std::uint64_t watch_id = ~std::uint64_t{0};  // a receive that no message ever consumes
constexpr int resolve_timeout_ms = 2000;

}  // namespace

Sender::Sender(std::shared_ptr<Nic> nic, rdma::EventChannel events, rdma::CompletionQueue cq,
               const Options& options)
    : Connection(std::move(nic), std::move(events), std::move(cq), options.dice, "send connection"),
      options_(options) {
  for (Send& send : sends_) {
    send.owner = this;
    send.next_free = std::exchange(free_, &send);
  }
}

Result<std::unique_ptr<Sender>> Sender::connect(std::shared_ptr<Nic> nic, const Handle& handle,
                                                const Options& options, Clock::time_point now) {
  const std::optional<rdma::Endpoint> peer = address_of(handle);
  if (!peer)
    return rdma::fail(
        Errc::refused,
        "the handle is not of this plugin, or of another release of it; use the same on all hosts");
  Result<rdma::EventChannel> events = rdma::EventChannel::create();
  if (!events) return std::unexpected(events.error());
  Result<rdma::CompletionQueue> cq = make_cq(*nic, {max_sends, 1});
  if (!cq) return std::unexpected(cq.error());
  std::unique_ptr<Sender> sender(new Sender(std::move(nic), std::move(*events), std::move(*cq), options));
  sender->peer_ = *peer;
  sender->secret_ = handle.secret;
  sender->deadline_ = now + options.connect_timeout;
  Result<rdma::CmId> id = rdma::CmId::create(sender->events_);
  if (!id) return std::unexpected(id.error());
  sender->id_ = std::move(*id);
  sender->id_.set_ack_timeout(options.ack_timeout);
  sender->set_traffic_class(options.traffic_class);
  // Bind to the device's own address, since another address would leave through another device. For a peer on
  // this host the kernel's choice is right, and IPv4 and IPv6 cannot be mixed.
  rdma::Endpoint from = sender->nic_->device().address, to = *peer;
  const bool named = from.address().is_v4() == to.address().is_v4() &&
                     from.address().is_loopback() == to.address().is_loopback();
  if (rdma_resolve_addr(sender->id_.get(), named ? from.data() : nullptr, to.data(), resolve_timeout_ms) != 0)
    return rdma::fail_os(Errc::address_unresolved, "cannot resolve " + rdma::text(to) + " over RDMA", errno);
  return sender;
}

Result<bool> Sender::connected(Clock::time_point now) {
  while (!established_) {
    const std::optional<rdma::CmEvent> event = events_.next();
    if (!event) break;
    if (Result<void> done = step(*event); !done) return std::unexpected(done.error());
  }
  if (!established_ && now >= deadline_)
    return rdma::fail(Errc::unreachable,
                      rdma::text(peer_) +
                          " did not accept in time; its program may be stopped, or needs a "
                          "longer WEIR_NCCL_CONNECT_TIMEOUT_MS");
  return established_;
}

Result<void> Sender::step(const rdma::CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(id_.get(), resolve_timeout_ms) == 0) return {};
      return rdma::fail_os(Errc::unreachable, "no route to " + rdma::text(peer_), errno);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return request_connection();
    case RDMA_CM_EVENT_ESTABLISHED:
      if (!is_welcome(event.private_bytes()))
        return rdma::fail(Errc::refused, rdma::text(peer_) +
                                             " runs another release of this plugin; use the same "
                                             "on all hosts");
      established_ = true;
      return {};
    default:
      return std::unexpected(connect_failure(event));
  }
}

Result<void> Sender::prepare() {
  Result<rdma::MemoryPool::Block> block = pool_.take_zeroed(sizeof(OfferRow) * slots);
  if (!block) return std::unexpected(block.error());
  offers_ = std::move(*block);
  Result<rdma::MemoryRegion> region =
      rdma::MemoryRegion::enroll(nic_->pd(), offers_.bytes(), rdma::Access::remote_write);
  if (!region) return std::unexpected(region.error());
  offers_region_ = std::move(*region);
  book_.emplace(
      std::span<const OfferRow, slots>(reinterpret_cast<const OfferRow*>(offers_.bytes().data()), slots));
  return make_queue_pair({max_sends, 1});
}

Result<void> Sender::request_connection() {
  if (Result<void> prepared = prepare(); !prepared) return prepared;
  // The peer sends us no messages, only offers. This receive is flushed when the queue pair fails, which
  // tells us about the failure even while no request is pending.
  ibv_recv_wr watch{}, *bad = nullptr;
  watch.wr_id = watch_id;
  if (const int failed = ibv_post_recv(id_->qp, &watch, &bad); failed != 0)
    return rdma::fail_os(Errc::device_error, "cannot post a receive", failed);
  Hello hello{};
  hello.magic = Hello::expected_magic;
  hello.protocol = protocol;
  hello.slots = slots;
  hello.secret = secret_;
  hello.offers_address = reinterpret_cast<std::uintptr_t>(offers_.bytes().data());
  hello.offers_rkey = offers_region_->rkey();
  rdma_conn_param request = parameters(&hello, sizeof hello);
  if (rdma_connect(id_.get(), &request) == 0) return {};
  return rdma::fail_os(Errc::unreachable, "cannot connect to " + rdma::text(peer_), errno);
}

Status Sender::isend(void* data, std::size_t bytes, int tag, const Region& region, Request** request) {
  *request = nullptr;
  if (status() != Status::success && status() != Status::remote_error) return status();
  std::optional<Taken> offer = book_->find(tag);
  if (!offer || free_ == nullptr) {
    idle();
    if (status() != Status::remote_error) return status();
    offer = book_->find(tag);  // the peer's last offers came before its end
  }
  if (status() == Status::remote_error) return send_in_vain(offer, request);
  // The rest of a message that is longer than its receive is not sent, as NCCL's own transport does.
  bytes = std::min<std::size_t>(bytes, offer->bytes);
  if (bytes > nic_->device().max_message_bytes)
    return fail(Status::invalid_usage, "a message of " + std::to_string(bytes) + " bytes with tag " +
                                           std::to_string(tag) + " is too long: the device sends " +
                                           std::to_string(nic_->device().max_message_bytes) + " at most");
  if (!region.covers(data, bytes))
    return fail(Status::internal_error, "isend of memory outside of its registration");
  if (dice_.active()) roll_fatal_dice();
  if (status() != Status::success) return status();
  Send& send = *free_;
  send.bytes = static_cast<std::uint32_t>(bytes);
  if (const Status posted = post(*offer, data, region, send); posted != Status::success) return posted;
  free_ = send.next_free;
  book_->take(*offer);
  *request = &send;
  return Status::success;
}

// A peer that offered a buffer and then left expects that its offer can be used: the request ends with the
// error.
Status Sender::send_in_vain(const std::optional<Taken>& offer, Request** request) {
  if (!offer || free_ == nullptr) return status();
  Send& send = *free_;
  free_ = send.next_free;
  send.done = false;
  book_->take(*offer);
  *request = &send;
  return Status::success;
}

Status Sender::post(const Taken& offer, void* data, const Region& region, Send& send) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(data), send.bytes, region.region.lkey()};
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = static_cast<std::uint64_t>(&send - sends_.data());
  wr.sg_list = &piece;
  wr.num_sge = send.bytes > 0 ? 1 : 0;
  wr.imm_data = htonl(immediate(offer.arrival));
  wr.send_flags = IBV_SEND_SIGNALED;
  if (send.bytes > 0 && send.bytes <= inline_bytes_) wr.send_flags |= IBV_SEND_INLINE;
  if (offer.posted && send.bytes <= send_bytes) {
    wr.opcode = IBV_WR_SEND_WITH_IMM;
  } else {
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.wr.rdma.remote_addr = offer.address;
    wr.wr.rdma.rkey = offer.rkey;
  }
  send.done = false;
  const bool late = dice_.active() && dice_.roll(dice_.faults().delay);
  send.show_at = late ? Clock::now() + dice_.faults().delay_by : Clock::time_point{};
  if (const int failed = ibv_post_send(id_->qp, &wr, &bad); failed != 0)
    return fail(Status::system_error, "the device took no send: " + std::generic_category().message(failed));
  return Status::success;
}

void Sender::on_success(const ibv_wc& completion) {
  if (completion.wr_id == watch_id || completion.wr_id >= sends_.size()) {
    fail(Status::remote_error, "the peer sent an unexpected message");
    return;
  }
  sends_[completion.wr_id].done = true;
}

Status Sender::test(Request& request, int* done, int* bytes) {
  Send& send = static_cast<Send&>(request);
  *done = 0;
  if (!send.done) idle();
  if (!send.done) return status();
  if (send.show_at != Clock::time_point{} && Clock::now() < send.show_at) return Status::success;
  *done = 1;
  if (bytes != nullptr) *bytes = static_cast<int>(send.bytes);
  send.next_free = std::exchange(free_, &send);
  return Status::success;
}

}  // namespace weir::nccl
