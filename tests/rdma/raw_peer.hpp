// A peer that uses plain verbs and so can break the protocol in any way: a client of the connection manager,
// with a queue pair and posted receives, that sends whatever a test wants.
#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rdma/stream/control_message.hpp"
#include "rdma/verbs/cm.hpp"
#include "rdma/verbs/objects.hpp"

namespace weir::rdma::testing_support {

class RawPeer {
 public:
  static constexpr std::uint32_t depth = 64;
  static constexpr std::size_t memory_bytes = 64 << 10;

  // `step` runs the other side's io_context for a moment; it is called while waiting.
  explicit RawPeer(std::function<void()> step) : step_(std::move(step)) {
    check(channel_.has_value() && id_.has_value(), "create");
  }

  // `greeting` travels in the request's private data.
  void connect(const Endpoint& server, std::span<const std::byte> greeting = {}) {
    Endpoint copy = server;
    check(rdma_resolve_addr(id_->get(), nullptr, copy.data(), 2000) == 0, "resolve_addr");
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    check(rdma_resolve_route(id_->get(), 2000) == 0, "resolve_route");
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    prepare();
    rdma_conn_param parameters{};
    parameters.responder_resources = 1;
    parameters.initiator_depth = 1;
    parameters.retry_count = 6;  // Soft-RoCE treats 7 as unlimited
    parameters.rnr_retry_count = 7;
    parameters.private_data = greeting.data();
    parameters.private_data_len = static_cast<std::uint8_t>(greeting.size());
    check(rdma_connect(id_->get(), &parameters) == 0, "connect");
    expect(RDMA_CM_EVENT_ESTABLISHED);
  }

  // Returns the server's announcement of its buffer.
  RegisterXferMemory announcement() {
    const auto message = parse(control());
    check(message.has_value() && std::holds_alternative<RegisterXferMemory>(*message), "announcement");
    return std::get<RegisterXferMemory>(*message);
  }
  // The next control message, as bytes.
  std::vector<std::byte> control() {
    while (control_.empty()) poll();
    std::vector<std::byte> first = std::move(control_.front());
    control_.erase(control_.begin());
    return first;
  }

  void send(std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, memory_.begin());
    post(IBV_WR_SEND, bytes.size(), 0, {});
  }
  // `immediate` is in host order.
  void send_with_imm(std::span<const std::byte> bytes, std::uint32_t immediate) {
    std::ranges::copy(bytes, memory_.begin());
    post(IBV_WR_SEND_WITH_IMM, bytes.size(), immediate, {});
  }
  // Writes `bytes` of memory() to the peer at `offset` of what it announced, with `immediate` as the number
  // of bytes claimed.
  void write_with_imm(const RegisterXferMemory& to, std::uint64_t offset, std::size_t bytes,
                      std::uint32_t immediate) {
    post(IBV_WR_RDMA_WRITE_WITH_IMM, bytes, immediate, {to.addr + offset, to.length_bytes, to.rkey});
  }
  void write(const RegisterXferMemory& to, std::uint64_t offset, std::size_t bytes) {
    post(IBV_WR_RDMA_WRITE, bytes, 0, {to.addr + offset, to.length_bytes, to.rkey});
  }
  // Reads `bytes` of the peer's memory into the beginning of memory().
  void read(std::uint64_t address, std::uint32_t rkey, std::size_t bytes) {
    post(IBV_WR_RDMA_READ, bytes, 0, {address, static_cast<std::uint32_t>(bytes), rkey});
  }
  std::uint32_t reads() const { return reads_; }  // that succeeded

  // Our own receive buffer, which the server may write.
  RegisterXferMemory own_buffer() const {
    return {reinterpret_cast<std::uintptr_t>(memory_.data() + memory_bytes / 2), memory_bytes / 2,
            region_->rkey()};
  }
  std::span<std::byte> memory() { return memory_; }
  // The memory that the server may read: all of memory().
  std::uint32_t rkey_to_read() {
    readable_ = MemoryRegion::enroll(*pd_, memory_, Access::remote_read);
    check(readable_.has_value(), "readable");
    return readable_->rkey();
  }
  const std::vector<std::uint32_t>& immediates() const { return immediates_; }

  std::uint32_t qp_num() const { return (*id_)->qp->qp_num; }

  // Stops answering without telling anyone, like a host that lost power.
  void vanish() { rdma_destroy_qp(id_->get()); }

  // Runs both sides until the server has disconnected us.
  void expect_disconnect() { expect(RDMA_CM_EVENT_DISCONNECTED); }
  void poll() {
    step_();
    std::array<ibv_wc, 16> completions;
    const int count = cq_->poll(completions);
    for (int i = 0; i < count; ++i) {
      const ibv_wc& wc = completions[static_cast<std::size_t>(i)];
      if (wc.status != IBV_WC_SUCCESS) {
        failures_.push_back(wc.status);
        continue;
      }
      if (wc.opcode == IBV_WC_RDMA_READ) ++reads_;
      if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) immediates_.push_back(ntohl(wc.imm_data));
      if (wc.opcode == IBV_WC_RECV && (wc.wc_flags & IBV_WC_WITH_IMM) != 0)
        immediates_.push_back(ntohl(wc.imm_data));
      if (wc.opcode == IBV_WC_RECV)
        control_.emplace_back(receive_slot(wc.wr_id), receive_slot(wc.wr_id) + wc.byte_len);
      if (wc.opcode == IBV_WC_RECV || wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) post_receive(wc.wr_id);
    }
  }
  const std::vector<ibv_wc_status>& failures() const { return failures_; }

 private:
  static void check(bool good, const char* what) {
    if (!good) throw std::runtime_error(std::string("raw peer: ") + what);
  }

  void prepare() {
    pd_ = ProtectionDomain::allocate((*id_)->verbs);
    check(pd_.has_value(), "pd");
    region_ = MemoryRegion::enroll(*pd_, memory_, Access::remote_write);
    completion_channel_ = CompletionChannel::create((*id_)->verbs);
    cq_ = CompletionQueue::create((*id_)->verbs, 4 * depth, *completion_channel_, 0);
    check(region_.has_value() && cq_.has_value(), "cq");
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = cq_->get();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {depth, depth, 1, 1, 0};
    check(rdma_create_qp(id_->get(), pd_->get(), &attributes) == 0, "qp");
    for (std::uint64_t i = 0; i < depth; ++i) post_receive(i);
  }

  void expect(rdma_cm_event_type wanted) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      if (cq_.has_value()) poll();
      step_();
      const std::optional<CmEvent> event = channel_->next();
      if (!event) continue;
      check(event->type == wanted, rdma_event_str(event->type));
      return;
    }
    check(false, "no event in time");
  }

  // Between what is sent, from the beginning of memory(), and own_buffer().
  std::byte* receive_slot(std::uint64_t i) { return memory_.data() + memory_bytes / 4 + i * 64; }

  void post_receive(std::uint64_t i) {
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(receive_slot(i)), 64, region_->lkey()};
    ibv_recv_wr wr{i, nullptr, &piece, 1};
    ibv_recv_wr* bad = nullptr;
    check(ibv_post_recv((*id_)->qp, &wr, &bad) == 0, "post_recv");
  }

  void post(ibv_wr_opcode opcode, std::size_t bytes, std::uint32_t immediate, const RegisterXferMemory& to) {
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory_.data()), static_cast<std::uint32_t>(bytes),
                  region_->lkey()};
    ibv_send_wr wr{};
    wr.wr_id = 1000;
    wr.sg_list = &piece;
    wr.num_sge = bytes > 0 ? 1 : 0;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.imm_data = htonl(immediate);
    wr.wr.rdma.remote_addr = to.addr;
    wr.wr.rdma.rkey = to.rkey;
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send((*id_)->qp, &wr, &bad) == 0, "post_send");
  }

  std::function<void()> step_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(memory_bytes);
  Result<EventChannel> channel_ = EventChannel::create();
  Result<ProtectionDomain> pd_;
  Result<MemoryRegion> region_ = fail(Errc::closed, "");
  Result<MemoryRegion> readable_ = fail(Errc::closed, "");
  Result<CompletionChannel> completion_channel_ = fail(Errc::closed, "");
  Result<CompletionQueue> cq_ = fail(Errc::closed, "");
  Result<CmId> id_ = CmId::create(*channel_);
  std::vector<std::vector<std::byte>> control_;
  std::vector<std::uint32_t> immediates_;
  std::vector<ibv_wc_status> failures_;
  std::uint32_t reads_ = 0;
};

}  // namespace weir::rdma::testing_support
