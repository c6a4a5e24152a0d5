#include "nccl/connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "nccl/log.hpp"
#include "rdma/verbs/refusals.hpp"
#include "rdma/verbs/verbs_shim.hpp"

namespace weir::nccl {
namespace {

using rdma::Errc;
using rdma::Result;

constexpr std::uint32_t wanted_inline_bytes = 64;
// Looking for connection manager events costs a system call, so it is not done while messages arrive.
constexpr std::uint32_t calls_between_looks = 128;

}  // namespace

Connection::Connection(std::shared_ptr<Nic> nic, rdma::EventChannel events, rdma::CompletionQueue cq,
                       FaultDice dice, std::string role)
    : nic_(std::move(nic)),
      events_(std::move(events)),
      cq_(std::move(cq)),
      pool_(nic_->pd(), {.slab_bytes = 0, .max_bytes = std::size_t{1} << 20, .keep_bytes = 0}),
      dice_(std::move(dice)),
      role_(std::move(role)) {}

Result<rdma::CompletionQueue> Connection::make_cq(const Nic& nic, Depths depths) {
  return rdma::CompletionQueue::create(nic.context(), static_cast<int>(depths.sends + depths.receives),
                                       nic.channel(), 0);
}

Result<void> Connection::make_queue_pair(Depths depths) {
  // Devices do not say how much inline data they allow; they refuse a queue pair that asks for too much.
  for (std::uint32_t inline_bytes = wanted_inline_bytes;; inline_bytes = 0) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = cq_.get();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {depths.sends, depths.receives, 1, 1, inline_bytes};
    if (rdma_create_qp(id_.get(), nic_->pd().get(), &attributes) == 0) {
      inline_bytes_ = std::min(attributes.cap.max_inline_data, inline_bytes);
      return {};
    }
    if (inline_bytes == 0)
      return rdma::fail_os(Errc::device_error,
                           "cannot create a queue pair on " + nic_->device().name +
                               "; close connections, or raise `ulimit -l`",
                           errno);
  }
}

// The RNR retry count is 7, without limit: receives are posted before their offer is made, so a sender meets
// RNR only if a fault was injected. The retry count is 6, because Soft-RoCE treats 7 as unlimited and would
// never notice that a peer vanished.
rdma_conn_param Connection::parameters(const void* private_data, std::size_t bytes) const {
  rdma_conn_param parameters{};
  parameters.responder_resources = parameters.initiator_depth = 1;
  parameters.retry_count = 6;
  parameters.rnr_retry_count = 7;
  parameters.private_data = private_data;
  parameters.private_data_len = static_cast<std::uint8_t>(bytes);
  return parameters;
}

void Connection::set_traffic_class(int traffic_class) {
  if (traffic_class < 0) return;
  auto type_of_service = static_cast<std::uint8_t>(traffic_class);
  rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &type_of_service, sizeof type_of_service);
}

void Connection::poll() {
  std::array<ibv_wc, 16> completions;
  for (;;) {
    const int count = cq_.poll(completions);
    if (count < 0) {
      fail(Status::system_error, "the completion queue is broken");
      return;
    }
    for (const ibv_wc& completion : std::span(completions).first(static_cast<std::size_t>(count))) {
      if (completion.status == IBV_WC_SUCCESS) {
        idle_calls_ = 0;
        on_success(completion);
      } else {
        on_failed(completion);
      }
    }
    if (count < static_cast<int>(completions.size())) return;
  }
}

void Connection::on_failed(const ibv_wc& completion) {
  if (status_ != Status::success) return;
  switch (completion.status) {
    case IBV_WC_WR_FLUSH_ERR:
      fail(Status::remote_error, "the peer closed the connection, or its process ended");
      return;
    case IBV_WC_RETRY_EXC_ERR:
      fail(Status::remote_error,
           "the peer does not answer any more: its process ended, its host is down, or the network loses "
           "packets "
           "(WEIR_NCCL_ACK_TIMEOUT_MS says how long to try)");
      return;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      fail(Status::remote_error, std::string("the peer's device refused a write (") +
                                     ibv_wc_status_str(completion.status) +
                                     "): it deregistered the memory that it had offered");
      return;
    case IBV_WC_LOC_PROT_ERR:
      fail(Status::internal_error,
           "the device may not read or write a buffer: it was deregistered while a request used it");
      return;
    default:
      fail(Status::system_error, std::string("the device reports: ") + ibv_wc_status_str(completion.status));
  }
}

void Connection::idle() {
  poll();
  if (++idle_calls_ % calls_between_looks == 0) look_at_events();
}

void Connection::look_at_events() {
  while (const std::optional<rdma::CmEvent> event = events_.next()) {
    if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
      fail(Status::system_error, "the RDMA device was removed");
    } else if (event->type == RDMA_CM_EVENT_DISCONNECTED) {
      poll();  // completions that precede the event
      fail(Status::remote_error, "the peer closed the connection, or its process ended");
    }
  }
}

Status Connection::fail(Status status, const std::string& what) {
  if (status_ != Status::success) return status_;
  status_ = status;
  log_warning(role_ + (peer_.port() != 0 ? " with " + rdma::text(peer_) : "") + " on " + nic_->device().name +
              " ended: " + what);
  hang_up();  // otherwise the peer finds out only when its retries run out
  return status_;
}

void Connection::roll_fatal_dice() {
  const bool dead = dice_.device_dies();
  if (!dead && !dice_.roll(dice_.faults().qp_error)) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(id_->qp, &attributes, IBV_QP_STATE);
  fail(Status::system_error,
       dead ? "WEIR_NCCL_FAULTS killed the device" : "WEIR_NCCL_FAULTS injected a QP error");
}

rdma::Error Connection::connect_failure(const rdma::CmEvent& event) const {
  const std::string peer = rdma::text(peer_);
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return {Errc::address_unresolved, rdma::why_not_resolved(peer, event.status)};
    case RDMA_CM_EVENT_REJECTED:
      return {Errc::refused, rdma::why_refused(peer, event.status)};
    default:
      return {Errc::unreachable, peer + " does not answer over RDMA (" + rdma_event_str(event.type) + ", " +
                                     std::to_string(event.status) + "); its program may have ended"};
  }
}

void Connection::hang_up() {
  if (id_ && id_->qp != nullptr) rdma_disconnect(id_.get());
}

bool Connection::busy() const { return id_ && rdma::peer_inside(id_->qp); }

}  // namespace weir::nccl
