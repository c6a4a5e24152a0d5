#include "nccl/receiver.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "nccl/log.hpp"

namespace weir::nccl {
namespace {

using rdma::Errc;
using rdma::Result;

constexpr std::uint64_t offer_id = std::uint64_t{1} << 32;  // wr_id of a WRITE of offers; below: of a slot

std::uint32_t clipped(std::size_t bytes) {
  return static_cast<std::uint32_t>(std::min<std::size_t>(bytes, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

Receiver::Receiver(std::shared_ptr<Nic> nic, rdma::EventChannel events, rdma::CompletionQueue cq,
                   rdma::CmId id, FaultDice dice)
    : Connection(std::move(nic), std::move(events), std::move(cq), std::move(dice), "receive connection") {
  id_ = std::move(id);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    receives_[slot].owner = this;
    receives_[slot].slot = static_cast<std::uint8_t>(slot);
  }
}

Result<std::unique_ptr<Receiver>> Receiver::accept(std::shared_ptr<Nic> nic, rdma::CmId id,
                                                   const Hello& hello, FaultDice dice,
                                                   Clock::time_point deadline) {
  Result<rdma::EventChannel> events = rdma::EventChannel::create();
  if (!events) return std::unexpected(events.error());
  Result<rdma::CompletionQueue> cq = make_cq(*nic, {offer_depth, receive_depth});
  if (!cq) return std::unexpected(cq.error());
  // Its events must not arrive at the listener's channel, which another thread may be reading.
  if (rdma_migrate_id(id.get(), events->get()) != 0)
    return rdma::fail_os(Errc::device_error, "cannot give a connection events of its own", errno);
  std::unique_ptr<Receiver> receiver(
      new Receiver(std::move(nic), std::move(*events), std::move(*cq), std::move(id), std::move(dice)));
  receiver->peer_ = receiver->id_.remote();
  receiver->deadline_ = deadline;
  receiver->peer_offers_ = hello.offers_address;
  receiver->peer_offers_rkey_ = hello.offers_rkey;
  if (Result<void> prepared = receiver->prepare(); !prepared) return std::unexpected(prepared.error());
  return receiver;
}

Result<void> Receiver::prepare() {
  Result<rdma::MemoryPool::Block> block = pool_.take_zeroed(sizeof(OfferRow) * slots);
  if (!block) return std::unexpected(block.error());
  rows_ = std::move(*block);
  Result<std::uint32_t> lkey = rows_.lkey();
  if (!lkey) return std::unexpected(lkey.error());
  rows_lkey_ = *lkey;
  if (Result<void> made = make_queue_pair({offer_depth, receive_depth}); !made) return made;
  Welcome welcome{Hello::expected_magic, protocol, 0};
  rdma_conn_param answer = parameters(&welcome, sizeof welcome);
  if (rdma_accept(id_.get(), &answer) != 0)
    return rdma::fail_os(Errc::device_error, "cannot accept an RDMA connection", errno);
  id_.set_rnr_wait(std::chrono::microseconds(100));  // the default is the longest there is
  return {};
}

Result<bool> Receiver::established(Clock::time_point now) {
  while (!established_) {
    const std::optional<rdma::CmEvent> event = events_.next();
    if (!event) break;
    if (event->type != RDMA_CM_EVENT_ESTABLISHED) return std::unexpected(connect_failure(*event));
    established_ = true;
  }
  if (!established_ && now >= deadline_)
    return rdma::fail(Errc::unreachable, rdma::text(peer_) + " did not complete the connection it asked for");
  return established_;
}

Status Receiver::check(std::span<void* const> data, std::span<const std::size_t> bytes,
                       std::span<Region* const> regions) {
  for (std::size_t i = 0; i < data.size(); ++i)
    if (regions[i] == nullptr || !regions[i]->covers(data[i], bytes[i]))
      return fail(Status::internal_error, "irecv of memory outside of its registration");
  return Status::success;
}

Status Receiver::irecv(std::span<void* const> data, std::span<const std::size_t> bytes,
                       std::span<const int> tags, std::span<Region* const> regions, bool optional,
                       Request** request) {
  *request = nullptr;
  if (status() != Status::success) return status();
  const std::optional<std::uint8_t> slot = book_.next();
  if (!slot || offers_posted_ - offers_sent_ >= offer_depth) {
    idle();
    if (dice_.active()) post_withheld(Clock::now());
    return status();
  }
  if (const Status valid = check(data, bytes, regions); valid != Status::success) return valid;
  if (dice_.active()) roll_fatal_dice();
  if (status() != Status::success) return status();

  Group& group = book_.open(bytes);
  // Once NCCL is told that an optional completion is done, it makes no further call. But the software NIC
  // delivers a small message only when the receiver polls, and an injected fault may withhold receives; in
  // these cases completion must not be reported early.
  group.optional = optional && !nic().device().software && !dice_.active();
  Receive& receive = receives_[*slot];
  ++opened_;
  const bool alone = data.size() == 1;
  receive.buffer =
      alone ? ibv_sge{reinterpret_cast<std::uintptr_t>(data[0]), clipped(bytes[0]), regions[0]->region.lkey()}
            : ibv_sge{};
  if (const Status posted = withhold_or_post(receive); posted != Status::success) return posted;

  OfferRow& row = reinterpret_cast<OfferRow*>(rows_.bytes().data())[*slot];
  for (std::size_t i = 0; i < data.size(); ++i)
    row[i] = Offer{reinterpret_cast<std::uintptr_t>(data[i]),
                   clipped(bytes[i]),
                   regions[i]->region.rkey(),
                   tags[i],
                   static_cast<std::uint16_t>(data.size()),
                   static_cast<std::uint16_t>(alone ? 1 : 0),
                   group.number};
  if (const Status posted = post_offers(*slot, data.size()); posted != Status::success) return posted;
  *request = &receive;
  return Status::success;
}

Status Receiver::post_receives(Receive& receive) {
  std::array<ibv_recv_wr, max_group> wrs{};
  const std::size_t count = book_.at(receive.slot).count;
  for (std::size_t i = 0; i < count; ++i) {
    wrs[i].wr_id = receive.slot;
    wrs[i].next = i + 1 < count ? &wrs[i + 1] : nullptr;
  }
  if (receive.buffer.length > 0) {
    wrs[0].sg_list = &receive.buffer;
    wrs[0].num_sge = 1;
  }
  ibv_recv_wr* bad = nullptr;
  if (const int failed = ibv_post_recv(id_->qp, wrs.data(), &bad); failed != 0)
    return fail(Status::system_error,
                "the device took no receive: " + std::generic_category().message(failed));
  return Status::success;
}

Status Receiver::post_offers(std::uint8_t slot, std::size_t count) {
  const std::size_t at = slot * sizeof(OfferRow);
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(rows_.bytes().data() + at),
                static_cast<std::uint32_t>(count * sizeof(Offer)), rows_lkey_};
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = offer_id;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = peer_offers_ + at;
  wr.wr.rdma.rkey = peer_offers_rkey_;
  if (piece.length <= inline_bytes_) wr.send_flags |= IBV_SEND_INLINE;
  if (++offers_posted_ % signal_interval == 0) wr.send_flags |= IBV_SEND_SIGNALED;
  if (const int failed = ibv_post_send(id_->qp, &wr, &bad); failed != 0)
    return fail(Status::system_error, "the device took no write: " + std::generic_category().message(failed));
  return Status::success;
}

// Receives are consumed in the order of their posting, so while one is withheld all later ones are, too.
Status Receiver::withhold_or_post(Receive& receive) {
  receive.post_at = receive.show_at = {};
  if (!dice_.active()) return post_receives(receive);
  const Clock::time_point now = Clock::now();
  if (dice_.roll(dice_.faults().delay)) receive.show_at = now + dice_.faults().delay_by;
  if (dice_.roll(dice_.faults().rnr_storm)) receive.post_at = now + dice_.faults().rnr_for;
  post_withheld(now);
  return status();
}

void Receiver::post_withheld(Clock::time_point now) {
  for (; withheld_ < opened_; ++withheld_) {
    Receive& receive = receives_[withheld_ % slots];
    if (receive.post_at > now) return;
    if (post_receives(receive) != Status::success) return;
  }
}

void Receiver::on_success(const ibv_wc& completion) {
  if (completion.wr_id >= offer_id) {
    offers_sent_ += signal_interval;
    return;
  }
  const std::optional<Arrival> which =
      (completion.wc_flags & IBV_WC_WITH_IMM) != 0 ? arrival(ntohl(completion.imm_data)) : std::nullopt;
  if (!which || which->slot != completion.wr_id || !book_.arrived(*which, completion.byte_len))
    fail(Status::remote_error, "the peer sent a message that matches no receive");
}

Status Receiver::test(Request& request, int* done, int* bytes) {
  Receive& receive = static_cast<Receive&>(request);
  Group& group = book_.at(receive.slot);
  *done = 0;
  if (dice_.active()) post_withheld(Clock::now());
  if (!group.complete()) idle();
  if (!group.complete() && !group.optional) return status();
  if (receive.show_at != Clock::time_point{} && Clock::now() < receive.show_at) return Status::success;
  *done = 1;
  if (bytes != nullptr)
    std::transform(group.bytes.begin(), group.bytes.begin() + group.count, bytes,
                   [](std::uint32_t size) { return static_cast<int>(size); });
  group.held = false;
  return Status::success;
}

Listener::Listener(std::shared_ptr<Nic> nic, rdma::EventChannel events, rdma::CmId id, std::uint64_t secret,
                   Dice dice)
    : nic_(std::move(nic)),
      events_(std::move(events)),
      id_(std::move(id)),
      secret_(secret),
      dice_(std::move(dice)) {}

Result<std::unique_ptr<Listener>> Listener::listen(std::shared_ptr<Nic> nic, std::uint64_t secret,
                                                   Dice dice) {
  Result<rdma::EventChannel> events = rdma::EventChannel::create();
  if (!events) return std::unexpected(events.error());
  Result<rdma::CmId> id = rdma::CmId::create(*events);
  if (!id) return std::unexpected(id.error());
  if (Result<void> bound = id->bind(nic->device().address); !bound) return std::unexpected(bound.error());
  if (Result<void> listens = id->listen(static_cast<int>(max_handshakes)); !listens)
    return std::unexpected(listens.error());
  return std::unique_ptr<Listener>(
      new Listener(std::move(nic), std::move(*events), std::move(*id), secret, std::move(dice)));
}

Handle Listener::handle() const { return make_handle(id_.local(), secret_); }

void Listener::on_request(const rdma::CmEvent& event, Clock::time_point now) {
  rdma::CmId id(event.id);
  const std::optional<Hello> hello = parse_hello(event.private_bytes());
  if (!hello || hello->secret != secret_ || handshakes_.size() >= max_handshakes) {
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  Result<std::unique_ptr<Receiver>> receiver =
      Receiver::accept(nic_, std::move(id), *hello, dice_(), now + handshake_timeout);
  if (receiver)
    handshakes_.push_back(std::move(*receiver));
  else
    log_warning("cannot accept on " + nic_->device().name + ": " + receiver.error().what);
}

Result<std::unique_ptr<Receiver>> Listener::accept(Clock::time_point now) {
  while (const std::optional<rdma::CmEvent> event = events_.next())
    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) on_request(*event, now);
  for (auto each = handshakes_.begin(); each != handshakes_.end();) {
    const Result<bool> up = (*each)->established(now);
    if (up && !*up) {
      ++each;
      continue;
    }
    std::unique_ptr<Receiver> receiver = std::move(*each);
    each = handshakes_.erase(each);
    if (up) return receiver;
    log_info("a connection ended before it was established: " + up.error().what);
  }
  return nullptr;
}

}  // namespace weir::nccl
