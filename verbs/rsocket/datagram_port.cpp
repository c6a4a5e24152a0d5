#include "verbs/rsocket/datagram_port.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "verbs/ibv/private_link.hpp"

namespace weir::rsocket {
namespace {

constexpr std::size_t grh_bytes = sizeof(ibv_grh);  // before each message received
constexpr std::size_t receive_slot_bytes = grh_bytes + DatagramPort::message_bytes;
constexpr std::uint32_t least_slots = 16;
constexpr std::uint64_t sent = 1ULL << 32;  // in a wr_id, beside the slot
constexpr std::uint8_t hop_limit = 64;
// A buffer's size in bytes becomes slots as if a message had this many.
constexpr std::uint32_t usual_message_bytes = 2048;

std::uint32_t slots(std::uint32_t bytes, std::uint32_t queue) {
  return std::clamp(bytes / usual_message_bytes, least_slots, std::max(queue, least_slots));
}

}  // namespace

std::expected<std::unique_ptr<DatagramPort>, int> DatagramPort::make(const cm::Endpoint& address,
                                                                     const Options& options) {
  std::unique_ptr<DatagramPort> port(new DatagramPort);
  port->address_ = address;
  if (const int error = port->set_up(options); error != 0) return std::unexpected(error);
  return port;
}

int DatagramPort::set_up(const Options& options) {
  events_ = open_channel();
  rdma_cm_id* id = nullptr;
  if (!events_ || rdma_create_id(events_.get(), &id, nullptr, RDMA_PS_UDP) != 0) return errno;
  id_.reset(id);
  // The address chooses the device; in RDMA's port space nobody looks for us, the UDP socket is what is
  // found.
  cm::Endpoint anywhere = address_;
  anywhere.port = 0;
  sockaddr_storage name{};
  cm::store(anywhere, name);
  if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&name)) != 0) return errno;
  receive_slots_ = slots(options.receive_bytes, options.receive_queue);
  send_slots_ = slots(options.send_bytes, options.send_queue);
  if (const int error = alarm_.open(id->verbs); error != 0) return error;
  cq_ =
      ibv_create_cq(id->verbs, static_cast<int>(receive_slots_ + send_slots_), nullptr, alarm_.channel(), 0);
  if (cq_ == nullptr) return errno;
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq_;
  attr.qp_type = IBV_QPT_UD;
  attr.sq_sig_all = 1;
  attr.cap = {send_slots_, receive_slots_, 1, 1, 0};
  if (rdma_create_qp(id, nullptr, &attr) != 0) return errno;
  // Whoever finds the UDP socket is told this address, and may be on another host: to ask the device for it
  // says so (verbs/ibv/datagram_reception.hpp).
  ibv_gid own = address_.gid();
  if (const int index = weir_gid_index(&own); index >= 0) ibv_query_gid(id->verbs, id->port_num, index, &own);
  const std::size_t bytes = receive_slots_ * receive_slot_bytes + send_slots_ * message_bytes;
  memory_ = std::make_unique<std::byte[]>(bytes);
  mr_ = ibv_reg_mr(id->pd, memory_.get(), bytes, IBV_ACCESS_LOCAL_WRITE);
  if (mr_ == nullptr) return errno;
  for (std::uint32_t slot = 0; slot < send_slots_; ++slot) free_.push_back(slot);
  for (std::uint32_t slot = 0; slot < receive_slots_; ++slot) release(slot);
  return 0;
}

DatagramPort::~DatagramPort() {
  if (id_ && id_->qp != nullptr) rdma_destroy_qp(id_.get());
  if (mr_ != nullptr) ibv_dereg_mr(mr_);
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
}

std::span<std::byte> DatagramPort::receive_slot(std::uint32_t slot) const {
  return {memory_.get() + slot * receive_slot_bytes, receive_slot_bytes};
}
std::span<std::byte> DatagramPort::send_slot(std::uint32_t slot) const {
  return {memory_.get() + receive_slots_ * receive_slot_bytes + slot * message_bytes, message_bytes};
}

ibv_ah* DatagramPort::address_handle(const cm::Endpoint& to) const {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = id_->port_num;
  attr.grh.dgid = to.gid();
  attr.grh.hop_limit = hop_limit;
  const ibv_gid own = address_.gid();
  attr.grh.sgid_index = static_cast<std::uint8_t>(std::max(weir_gid_index(&own), 0));
  return ibv_create_ah(id_->pd, &attr);
}

void DatagramPort::release(std::uint32_t slot) {
  const auto at = receive_slot(slot);
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(at.data()), static_cast<std::uint32_t>(at.size()),
                mr_->lkey};
  ibv_recv_wr request{};
  request.wr_id = slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  (void)ibv_post_recv(id_->qp, &request, &bad);  // fails only if the queue pair does; then nothing arrives
}

bool DatagramPort::progress(
    const std::function<void(std::uint32_t slot, std::span<const std::byte> bytes)>& received) {
  std::array<ibv_wc, 32> batch;
  const int count = ibv_poll_cq(cq_, static_cast<int>(batch.size()), batch.data());
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = batch[static_cast<std::size_t>(i)];
    const auto slot = static_cast<std::uint32_t>(completion.wr_id);
    if ((completion.wr_id & sent) != 0) {
      free_.push_back(slot);
    } else if (completion.status != IBV_WC_SUCCESS || completion.byte_len < grh_bytes) {
      release(slot);
    } else {
      received(slot, receive_slot(slot).subspan(grh_bytes, completion.byte_len - grh_bytes));
    }
  }
  return count > 0;
}

int DatagramPort::send(ibv_ah* to, std::uint32_t qpn, std::span<const std::byte> header, Pieces& data) {
  const std::uint32_t slot = free_.back();
  const auto at = send_slot(slot);
  const std::size_t bytes = header.size() + data.left();
  if (bytes > at.size()) return EMSGSIZE;
  std::copy(header.begin(), header.end(), at.begin());
  data.copy_to(at.subspan(header.size(), data.left()));
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(at.data()), static_cast<std::uint32_t>(bytes), mr_->lkey};
  ibv_send_wr request{};
  request.wr_id = sent | slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.wr.ud.ah = to;
  request.wr.ud.remote_qpn = qpn;
  request.wr.ud.remote_qkey = RDMA_UDP_QKEY;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(id_->qp, &request, &bad); error != 0) return error;
  free_.pop_back();
  return 0;
}

}  // namespace weir::rsocket
