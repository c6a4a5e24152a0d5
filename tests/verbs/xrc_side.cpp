#include "xrc_side.hpp"

#include <unistd.h>

#include <cstdlib>

#include "peer_protocol.hpp"

namespace weir::verbs_test {

Xrcd open_xrcd(ibv_context* context, int fd, int oflags) {
  ibv_xrcd_init_attr init{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, fd, oflags};
  return Xrcd(ibv_open_xrcd(context, &init));
}

Srq make_xrc_srq(ibv_pd* pd, ibv_xrcd* xrcd, ibv_cq* cq) {
  ibv_srq_init_attr_ex init{};
  init.attr = {64, 1, 0};
  init.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  init.srq_type = IBV_SRQT_XRC;
  init.pd = pd;
  init.xrcd = xrcd;
  init.cq = cq;
  return Srq(ibv_create_srq_ex(pd->context, &init));
}

Qp make_xrc_sender(ibv_pd* pd, ibv_cq* cq, Builders builders) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = cq;
  init.cap = {64, 0, 1, 0, 0};
  init.qp_type = IBV_QPT_XRC_SEND;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  if (builders == Builders::yes) {
    init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = IBV_QP_EX_WITH_SEND;
  }
  init.pd = pd;
  return Qp(ibv_create_qp_ex(pd->context, &init));
}

Qp make_xrc_target(ibv_xrcd* xrcd) {
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_XRC_RECV;
  init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  init.xrcd = xrcd;
  return Qp(ibv_create_qp_ex(xrcd->context, &init));
}

Qp open_xrc_target(ibv_xrcd* xrcd, std::uint32_t qpn) {
  ibv_qp_open_attr open{};
  open.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  open.qp_num = qpn;
  open.xrcd = xrcd;
  open.qp_type = IBV_QPT_XRC_RECV;
  return Qp(ibv_open_qp(xrcd->context, &open));
}

int bring_up_xrc(ibv_qp* qp, std::uint32_t destination, Patience patience) {
  const Step rtr = to_rtr(IBV_QPT_RC, destination, first_gid(qp->context));
  for (const Step& step : {to_init(IBV_QPT_RC), rtr, to_rts(IBV_QPT_RC, patience)})
    if (const int error = modify(qp, step)) return error;
  return 0;
}

int post_xrc_receive(ibv_srq* srq, std::uint64_t id, ibv_sge sge) {
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  return ibv_post_srq_recv(srq, &wr, &bad);
}

std::uint32_t number_of(ibv_srq* srq) {
  std::uint32_t number = 0;
  EXPECT_EQ(ibv_get_srq_num(srq, &number), 0);
  return number;
}

DomainFile::DomainFile() {
  const int file = ::open(directory_.file("domain").c_str(), O_CREAT | O_RDWR, 0600);
  fd_ = ::fcntl(file, F_DUPFD, control_fd + 1);  // a peer's control socket has its number in the peer
  if (fd_ < 0) std::abort();
  ::close(file);
}

DomainFile::~DomainFile() { ::close(fd_); }

XrcSide::XrcSide(MemoryKind kind, int domain, int oflags)
    : memory(kind, bytes),
      context(open_device()),
      pd(ibv_alloc_pd(context.get())),
      mr(register_memory(pd.get(), memory.bytes().data(), bytes)),
      channel(ibv_create_comp_channel(context.get())),
      cq(ibv_create_cq(context.get(), 256, nullptr, channel.get(), 0)),
      xrcd(open_xrcd(context.get(), domain, oflags)) {
  if (xrcd) srq = make_xrc_srq(pd.get(), xrcd.get(), cq.get());
}

SideAddress XrcSide::address() const {
  return {number_of(srq.get()), mr->rkey, reinterpret_cast<std::uint64_t>(memory.bytes().data())};
}

namespace {

Reply reap(const XrcSide& side, const Request& request) {
  Reply reply;
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const auto wc = wait_for(side.cq.get());
    if (!wc) {
      reply.error = ETIME;
      return reply;
    }
    if (wc->status == IBV_WC_SUCCESS)
      ++reply.succeeded;
    else if (reply.status == IBV_WC_SUCCESS)
      reply.status = wc->status;
    reply.address.qpn = wc->qp_num;
  }
  reply.checksum = checksum(side.memory.bytes().first(request.length));
  return reply;
}

int post_receives(const XrcSide& side, const Request& request) {
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const auto at = reinterpret_cast<std::uint64_t>(side.memory.bytes().data()) + i * request.length;
    const int error =
        post_xrc_receive(side.srq.get(), i, {at, static_cast<std::uint32_t>(request.length), side.mr->lkey});
    if (error != 0) return error;
  }
  return 0;
}

Reply send_on(const XrcSide& side, const Request& request) {
  Reply reply;
  reply.error = bring_up_xrc(side.sender.get(), request.count);
  const auto at = reinterpret_cast<std::uint64_t>(side.memory.bytes().data());
  for (std::uint32_t number = 0; reply.error == 0;) {
    ibv_sge sge{at, static_cast<std::uint32_t>(request.length), side.mr->lkey};
    ibv_send_wr wr = send_wr(number, sge, IBV_WR_SEND_WITH_IMM);
    wr.imm_data = number;
    wr.qp_type.xrc.remote_srqn = request.peer.qpn;
    if (post(side.sender.get(), wr) == 0) ++number;
    const auto wc = poll_once(side.cq.get());
    if (wc && wc->status != IBV_WC_SUCCESS) {
      reply.status = wc->status;
      return reply;
    }
  }
  return reply;
}

void serve(const XrcSide& side, std::size_t length) {
  const auto at = reinterpret_cast<std::uint64_t>(side.memory.bytes().data());
  const ibv_sge sge{at, static_cast<std::uint32_t>(length), side.mr->lkey};
  for (;;) {
    while (post_xrc_receive(side.srq.get(), 1, sge) == 0) {
    }
    (void)poll_once(side.cq.get());
  }
}

}  // namespace

Reply obey_xrc(std::optional<XrcSide>& side, const Request& request) {
  Reply reply;
  switch (request.order) {
    case Order::xrc_join:
      errno = 0;
      side.emplace(request.kind, static_cast<int>(request.count), static_cast<int>(request.seed));
      reply.error = side->xrcd ? 0 : errno;
      if (side->srq) reply.address = side->address();
      return reply;
    case Order::xrc_receive:
      reply.error = post_receives(*side, request);
      return reply;
    case Order::xrc_reap:
      return reap(*side, request);
    case Order::xrc_target:
      side->target = make_xrc_target(side->xrcd.get());
      if (side->target) reply.address.qpn = side->target->qp_num;
      return reply;
    case Order::xrc_connect:
      reply.error = bring_up_xrc(side->target.get(), request.peer.qpn);
      return reply;
    case Order::xrc_open:
      side->target = open_xrc_target(side->xrcd.get(), request.peer.qpn);
      reply.error = side->target ? 0 : errno;
      return reply;
    case Order::xrc_close:
      side->target.reset();
      return reply;
    case Order::xrc_sender:
      side->sender = make_xrc_sender(side->pd.get(), side->cq.get());
      reply.address.qpn = side->sender->qp_num;
      return reply;
    case Order::xrc_send_on:
      return send_on(*side, request);
    case Order::xrc_serve:
      serve(*side, request.length);
      return reply;
    case Order::xrc_quit:
      side.reset();
      return reply;
    default:
      return reply;
  }
}

}  // namespace weir::verbs_test
