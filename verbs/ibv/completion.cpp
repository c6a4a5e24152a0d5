// Completion channels and completion queues.
//
// A channel's descriptor is readable while events are pending, and honours the file status flags that the
// application sets on it. It may be readable without an event, but not if it is blocking
// (nic/completion_channels.hpp).
#include <sched.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "link/fabric/fabric_port.hpp"
#include "link/not_cancelled.hpp"
#include "verbs/faulty/calls.hpp"
#include "verbs/ibv/command_fd.hpp"
#include "verbs/ibv/event_count.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/private_link.hpp"
#include "verbs/look/before_sleep.hpp"
#include "waiting/poll_yield.hpp"

namespace weir::verbs {
namespace {

std::atomic<unsigned> open_channels{0};

Cq* take_pending_event(Channel& channel) {
  const std::lock_guard lock(channel.mutex);
  for (std::size_t i = 0; i < channel.cqs.size(); ++i) {
    Cq* cq = channel.cqs[(channel.next + i) % channel.cqs.size()];
    if (!cq->nic_cq->take_event()) continue;
    channel.next = (channel.next + i + 1) % channel.cqs.size();
    ++cq->events_delivered;
    return cq;
  }
  return nullptr;
}

bool take_count(int events, int flags) {
  std::uint64_t one = 0;
  const iovec into{&one, sizeof one};
  return ::preadv2(events, &into, 1, -1, flags) == sizeof one;
}

// If packets wake the program, they may bring the event.
bool came_with_packets(const Channel& channel) {
  NicProcess& nic = *context_of(channel.channel.context).nic;
  return nic.network().wakes_sleeper() && nic.channels().raised_while(channel.number, [&] {
    nic.adapter().receive_packets(rnic::Adapter::Patience::try_once);
  });
}

bool take_count_now(const Channel& channel) {
  return came_with_packets(channel) || take_count(channel.events, RWF_NOWAIT);
}

// Counts one event off, and waits for it if the application's descriptor is blocking. False: errno says why,
// EAGAIN or EINTR. The eventfd is always blocking.
bool take_count(const Channel& channel) {
  if (take_count_now(channel)) return true;
  if (!is_blocking(channel.channel.fd)) return false;
  PacketNetwork& network = context_of(channel.channel.context).nic->network();
  if (network.wakes_sleeper()) network.channels_change();  // it was not blocking before
  if (look::before_sleep([&] { return take_count_now(channel); })) return true;
  return take_count(channel.events, 0);
}

}  // namespace

// A datagram's completion says what its first 40 bytes are (Annex A17.4.5.1). Devices report it in the
// service level, otherwise unused on RoCE: bit 3 is UDP, and below it 1 is IPv6, 2 is IPv4. UCX reads it.
constexpr std::uint8_t over_udp = 8, ipv6_header = 1, ipv4_header = 2;
std::uint8_t packet_type(const rnic::WorkCompletion& from) {
  return over_udp | (from.over_ipv4 ? ipv4_header : ipv6_header);
}

void to_verbs(const rnic::WorkCompletion& from, ibv_wc& to) {
  to.wr_id = from.wr_id;
  to.status = static_cast<ibv_wc_status>(from.status);
  to.opcode = static_cast<ibv_wc_opcode>(from.opcode);
  to.vendor_err = 0;
  to.byte_len = from.byte_len;
  to.imm_data = from.imm_be;
  to.qp_num = from.qpn;
  to.src_qp = from.src_qpn;
  to.wc_flags = (from.has_imm ? unsigned{IBV_WC_WITH_IMM} : 0u) |
                (from.has_invalidated ? unsigned{IBV_WC_WITH_INV} : 0u) |
                (from.has_grh ? unsigned{IBV_WC_GRH} : 0u);
  to.pkey_index = 0;
  to.slid = 0;
  to.sl = from.has_grh ? packet_type(from) : std::uint8_t{0};
  to.dlid_path_bits = 0;
}

// Programs spin on ibv_poll_cq even when the peer that would complete something needs this very processor.
bool gave_way_after_empty_poll(Cq& cq) {
  const std::uint32_t polls = cq.empty_polls.load(std::memory_order_relaxed) + 1;
  cq.empty_polls.store(polls, std::memory_order_relaxed);
  if (link::FabricPort* const fabric = link::FabricPort::of_process(); fabric != nullptr) [[unlikely]] {
    fabric->polled_in_vain(polls == 1);
    return true;
  }
  static thread_local waiting::PollYield rule;
  const auto way = cq.nic_cq->on_packets.load(std::memory_order_relaxed) != 0
                       ? waiting::PollYield::Way::kernel
                       : waiting::PollYield::Way::memory;
  return rule.polled_in_vain(
      polls, way, [&] { return cq.nic_cq->peer_on_this_cpu(); }, [] { ::sched_yield(); }, link::Clock::now);
}

void after_full_poll(Cq& cq) {
  if (cq.empty_polls.load(std::memory_order_relaxed) != 0) cq.empty_polls.store(0, std::memory_order_relaxed);
}

namespace {

int take(ibv_cq* cq, int count, ibv_wc* out) {
  int filled = 0;
  while (filled < count) {
    std::array<rnic::WorkCompletion, 32> batch;
    const auto want = std::min<std::size_t>(batch.size(), static_cast<std::size_t>(count - filled));
    const int got = cq_of(cq).nic_cq->poll({batch.data(), want});
    for (int i = 0; i < got; ++i) to_verbs(batch[static_cast<std::size_t>(i)], out[filled++]);
    if (static_cast<std::size_t>(got) < want) break;
  }
  return filled;
}

}  // namespace

int poll_cq(ibv_cq* cq, int count, ibv_wc* out) {
  if (count <= 0) return count == 0 ? 0 : -1;
  int filled = take(cq, count, out);
  if (filled == 0 && gave_way_after_empty_poll(cq_of(cq))) filled = take(cq, count, out);
  if (filled != 0) after_full_poll(cq_of(cq));
  return filled;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  cq_of(cq).nic_cq->arm(solicited_only ? rnic::Armed::solicited_only : rnic::Armed::next);
  return 0;
}

// As the two above, on a weak NIC.
namespace {

int poll_weak_cq(ibv_cq* cq, int count, ibv_wc* out) {
  Cq& c = cq_of(cq);
  rnic::weak::Weak& weak = *context_of(cq->context).adapter().weak();
  const int shown = count > 0 ? c.weak.show(weak, cq->handle, count) : count;
  if (shown == 0) return 0;
  const int filled = poll_cq(cq, shown, out);
  if (!c.nic_cq->is_armed()) c.weak.polled_unarmed();
  if (weak.plan.has(rnic::weak::Weakness::failed_fields))
    for (int i = 0; i < filled; ++i)
      if (out[i].status != IBV_WC_SUCCESS) fill_undefined(out[i]);
  return filled;
}

int arm_weak_cq(ibv_cq* cq, int solicited_only) {
  cq_of(cq).weak.armed();
  return req_notify_cq(cq, solicited_only);
}

}  // namespace

void make_completions_weak(ibv_context_ops& calls) {
  calls.poll_cq = poll_weak_cq;
  calls.req_notify_cq = arm_weak_cq;
}

Cq* create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) {
  if (is_refused(*context_of(context).nic, faults::Call::create_cq)) return nullptr;
  if (cqe < 1 || static_cast<std::uint32_t>(cqe) > rnic::max_cqe || comp_vector < 0 ||
      comp_vector >= context->num_comp_vectors ||
      (channel != nullptr && !same_command_file(channel->context->cmd_fd, context->cmd_fd))) {
    errno = EINVAL;
    return nullptr;
  }
  const std::uint32_t number = channel != nullptr ? channel_of(channel).number : 0;
  auto* nic_cq = context_of(context).adapter().create_cq(static_cast<std::uint32_t>(cqe), number);
  if (nic_cq == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* cq = new Cq{};
  cq->nic_cq = nic_cq;
  cq->cq.context = context;
  cq->cq.channel = channel;
  cq->cq.cq_context = cq_context;
  cq->cq.handle = nic_cq->index();
  cq->cq.cqe = cqe;
  pthread_mutex_init(&cq->cq.mutex, nullptr);
  pthread_cond_init(&cq->cq.cond, nullptr);
  if (channel != nullptr) {
    const std::lock_guard lock(channel_of(channel).mutex);
    channel_of(channel).cqs.push_back(cq);
    ++channel->refcnt;
  }
  return cq;
}

}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  const auto opened = context_of(context).nic->open_channel();
  if (!opened) {
    errno = static_cast<int>(opened.error().code);
    return nullptr;
  }
  auto* channel = new Channel{};
  channel->channel = {context, opened->descriptor, 0};
  channel->number = opened->number;
  channel->events = opened->events;
  open_channels.fetch_add(1, std::memory_order_relaxed);
  return &channel->channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  Channel& c = channel_of(channel);
  {
    const std::lock_guard lock(c.mutex);
    if (!c.cqs.empty()) return EBUSY;
  }
  const weir::link::NotCancelled whole;
  context_of(channel->context).nic->close_channel(c.number);
  delete &c;
  open_channels.fetch_sub(1, std::memory_order_relaxed);
  return 0;
}

unsigned weir_open_channels() { return open_channels.load(std::memory_order_relaxed); }

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                      int comp_vector) {
  Cq* const cq = create_cq(context, cqe, cq_context, channel, comp_vector);
  return cq != nullptr ? &cq->cq : nullptr;
}

int ibv_resize_cq(ibv_cq* cq, int cqe) {
  if (cqe < 1 || static_cast<std::uint32_t>(cqe) > weir::rnic::max_cqe) return EINVAL;
  // Completions live in the queue pairs' rings, so any size would do. But IBA 11.2.8.3 forbids a new size
  // below the number of completions that the CQ holds.
  if (cq_of(cq).nic_cq->unpolled() > static_cast<std::uint32_t>(cqe)) return EINVAL;
  cq_of(cq).nic_cq->resize(static_cast<std::uint32_t>(cqe));
  cq->cqe = cqe;
  return 0;
}

int ibv_destroy_cq(ibv_cq* cq) {
  Cq& c = cq_of(cq);
  if (c.nic_cq->attached() != 0) return EBUSY;
  std::uint32_t delivered = 0;
  if (cq->channel != nullptr) {
    Channel& channel = channel_of(cq->channel);
    const std::lock_guard lock(channel.mutex);
    std::erase(channel.cqs, &c);
    discard_events(channel.events, c.nic_cq->take_events());
    --cq->channel->refcnt;
    delivered = c.events_delivered;
  }
  wait_for_acks(*cq, cq->comp_events_completed, delivered);
  context_of(cq->context).adapter().destroy(c.nic_cq);
  pthread_cond_destroy(&cq->cond);
  pthread_mutex_destroy(&cq->mutex);
  if (c.domain != nullptr) drop_user(*c.domain);
  delete &c;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  context_of(channel->context).adapter().departures().will_sleep();
  for (;;) {
    if (!take_count(channel_of(channel))) return -1;
    // The CQ that raised this count may have been destroyed meanwhile; then ignore the count.
    Cq* found = take_pending_event(channel_of(channel));
    if (found == nullptr) continue;
    *cq = &found->cq;
    *cq_context = found->cq.cq_context;
    return 0;
  }
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned int count) {
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}

}  // extern "C"
