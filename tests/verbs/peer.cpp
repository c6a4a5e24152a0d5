// The other process of the process tests: does what peer_protocol.hpp describes, one order after another.
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "flows.hpp"
#include "peer_protocol.hpp"
#include "tests/rnic/frames.hpp"
#include "xrc_side.hpp"

namespace weir::verbs_test {
namespace {

// Counts completions until there were `count`, or none came for long.
Reply reap(Side& side, std::uint32_t count) {
  Reply reply;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto wc = wait_for(side.cq.get());
    if (!wc) {
      reply.error = ETIME;
      return reply;
    }
    if (wc->status == IBV_WC_SUCCESS)
      ++reply.succeeded;
    else if (reply.status == IBV_WC_SUCCESS)
      reply.status = wc->status;
  }
  return reply;
}

Reply run(Side& side, const Request& request) {
  Reply reply;
  reply.error = side.post(request.opcode, 1, request.length, request.peer, request.seed);
  return reply.error == 0 ? reap(side, 1) : reply;
}

// Keeps the queue full until a request fails.
template <class Post>
Reply until_failure(Side& side, Post post) {
  Reply reply;
  for (std::uint32_t number = 0;;) {
    while (post(number) == 0) ++number;
    while (const auto wc = poll_once(side.cq.get())) {
      if (wc->status == IBV_WC_SUCCESS) {
        ++reply.succeeded;
        continue;
      }
      reply.status = wc->status;
      return reply;
    }
    ::sched_yield();
  }
}

void serve(Side& side, std::size_t length) {
  const std::size_t places = side.bytes().size() / length;
  for (std::uint64_t posted = 0;;) {
    while (side.receive(posted, posted % places * length, length) == 0) ++posted;
    (void)poll_once(side.cq.get());
  }
}

Reply echo(Side& side, const Request& request) {
  Reply reply;
  const auto half = request.length;
  for (std::uint32_t i = 0; i < Side::queue_depth; ++i) (void)side.receive(i, half, half);
  reply.error = ibv_req_notify_cq(side.cq.get(), 0);
  while (reply.succeeded < request.count) {
    bool any = false;
    while (const auto wc = poll_once(side.cq.get())) {
      any = true;
      if (wc->status != IBV_WC_SUCCESS) {
        reply.status = wc->status;
        return reply;
      }
      if (wc->opcode != IBV_WC_RECV) continue;
      (void)side.receive(1, half, half);
      reply.error = side.post(IBV_WR_SEND, 2, half, request.peer);
      ++reply.succeeded;
    }
    if (any) continue;
    if (!readable(side.channel->fd, 60'000)) {
      reply.error = ETIME;
      return reply;
    }
    ibv_cq* cq = nullptr;
    void* cookie = nullptr;
    if (ibv_get_cq_event(side.channel.get(), &cq, &cookie) == 0) ibv_ack_cq_events(cq, 1);
    reply.error = ibv_req_notify_cq(side.cq.get(), 0);
  }
  return reply;
}

Reply send_frames(Side& side, std::uint32_t count) {
  const Cq cq(ibv_create_cq(side.context.get(), 16, nullptr, nullptr, 0));
  ibv_qp_init_attr init = init_attr(cq.get(), {.type = IBV_QPT_RAW_PACKET});
  const Qp qp(ibv_create_qp(side.pd.get(), &init));
  Reply reply;
  reply.error = bring_up_raw(qp.get());
  for (std::uint32_t i = 0; i < count && reply.error == 0; ++i) {
    const std::vector<std::byte> bytes = rnic::test::frame({.host = static_cast<std::uint8_t>(i)});
    std::memcpy(side.bytes().data(), bytes.data(), bytes.size());
    ibv_sge sge = side.sge(0, bytes.size());
    reply.error = post(qp.get(), send_wr(i, sge));
    if (completed(wait_for(cq.get()), i)) ++reply.succeeded;
  }
  return reply;
}

// Inline, as what it would be in is gone when main has returned. Nothing is destroyed; what is made stays in
// reach, or LeakSanitizer would change the exit status.
void post_last_word(std::uint32_t to) {
  ibv_context* const context = open_device().release();
  ibv_pd* const pd = ibv_alloc_pd(context);
  ibv_qp_init_attr init = init_attr(ibv_create_cq(context, 16, nullptr, nullptr, 0), {.type = IBV_QPT_UD});
  static ibv_qp* const qp = ibv_create_qp(pd, &init);
  ibv_ah_attr attr{};
  attr.port_num = 1;
  attr.is_global = 1;
  attr.grh.dgid = first_gid(context);
  static ibv_ah* const ah = ibv_create_ah(pd, &attr);
  if (bring_up(qp, 0) != 0) return;
  char word[] = "farewell";
  ibv_sge sge{reinterpret_cast<std::uint64_t>(word), sizeof word, 0};
  ibv_send_wr wr = send_wr(1, sge, IBV_WR_SEND, IBV_SEND_INLINE);
  wr.wr.ud = {ah, to, 0x1111};
  (void)post(qp, wr);
}

Reply obey(std::optional<Side>& side, std::optional<XrcSide>& xrc_side, const Request& request) {
  Reply reply;
  switch (request.order) {
    case Order::open:
      side.emplace(request.kind, request.length);
      reply.address = side->address();
      return reply;
    case Order::connect:
      reply.error = bring_up(side->qp.get(), request.peer.qpn, request.patience);
      return reply;
    case Order::fill:
      fill(side->bytes(), request.seed);
      return reply;
    case Order::cut:
      reply.error = side->memory.cut_file_to(request.length) ? 0 : errno;
      return reply;
    case Order::sum:
      reply.checksum = checksum(side->bytes().first(request.length));
      return reply;
    case Order::receive:
      for (std::uint32_t i = 0; i < request.count && reply.error == 0; ++i)
        reply.error = side->receive(i, i * request.length, request.length);
      return reply;
    case Order::run:
      return run(*side, request);
    case Order::reap:
      return reap(*side, request.count);
    case Order::write_on:
      return until_failure(*side, [&](std::uint32_t number) {
        return side->post(IBV_WR_RDMA_WRITE, number, request.length, request.peer);
      });
    case Order::send_on:
      return until_failure(*side, [&](std::uint32_t number) {
        return side->post(IBV_WR_SEND_WITH_IMM, number, request.length, request.peer, number);
      });
    case Order::serve:
      serve(*side, request.length);
      return reply;
    case Order::echo:
      return echo(*side, request);
    case Order::send_frames:
      return send_frames(*side, request.count);
    case Order::destroy:
      side.reset();
      return reply;
    case Order::leave:
    case Order::last_word:
      return reply;
    default:
      return obey_xrc(xrc_side, request);
  }
}

char program[] = "/proc/self/exe";

// In the middle of whatever it was doing. execve is async-signal-safe; a handler's mask outlives it, so the
// signal is not blocked in ours (SA_NODEFER).
void become_anew(int) {
  char* arguments[] = {program, nullptr};
  ::execve(program, arguments, environ);
  ::_exit(1);
}

}  // namespace
}  // namespace weir::verbs_test

int main() {
  using namespace weir::verbs_test;
  struct sigaction exec_again{};
  exec_again.sa_handler = become_anew;
  exec_again.sa_flags = SA_NODEFER;
  ::sigaction(SIGUSR1, &exec_again, nullptr);
  // Kept for good: `leave` is a process that ends without destroying anything.
  static auto* side = new std::optional<Side>;
  static auto* xrc_side = new std::optional<XrcSide>;
  Request request;
  while (::recv(control_fd, &request, sizeof request, 0) == sizeof request) {
    const Reply reply = obey(*side, *xrc_side, request);
    if (::send(control_fd, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) break;
    if (request.order == Order::last_word) post_last_word(request.peer.qpn);
    if (request.order == Order::leave || request.order == Order::last_word) break;
  }
  return 0;
}
