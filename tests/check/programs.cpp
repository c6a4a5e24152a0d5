// One wrong program for each rule, and its right neighbour.
//
//   check_programs RULE[.VARIANT] wrong|right
//
// The line that the report must name ends with the program's name in a comment.
#include <endian.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "tests/check/pair.hpp"

namespace weir::check_test {
namespace {

enum class Side : bool { right, wrong };

using Program = void (*)(Side);

std::unique_ptr<Pair> pair_with(const PairOptions& options) { return std::make_unique<Pair>(options); }
std::unique_ptr<Pair> pair() { return pair_with({}); }

constexpr Program remote_access_bounds = [](Side side) {
  const auto two = pair();
  const std::size_t offset = side == Side::wrong ? Pair::bytes - 32 : Pair::bytes - 64;
  post(two->qp, write_to(two->region, offset), piece(two->region, 0, 64));  // remote-access.bounds
  wait_for(two->cq);
};

constexpr Program remote_access_region_rights = [](Side side) {
  const auto two = pair();
  static std::byte memory[64];
  const unsigned rights = side == Side::wrong ? unsigned{IBV_ACCESS_REMOTE_READ} : all_rights;
  ibv_mr* const other = two->register_memory(memory, sizeof memory, rights);
  post(two->qp, write_to(other, 0), piece(two->region, 0, 64));  // remote-access.region-rights
  wait_for(two->cq);
};

constexpr Program remote_request_queue_pair_rights = [](Side side) {
  const auto two =
      pair_with({.queue_pair_rights = side == Side::wrong ? unsigned{IBV_ACCESS_REMOTE_READ} : all_rights});
  post(two->qp, write_to(two->region, 0), piece(two->region, 64, 64));  // remote-request.queue-pair-rights
  wait_for(two->cq);
};

constexpr Program remote_access_stale_key = [](Side side) {
  const auto two = pair();
  static std::byte memory[64];
  ibv_mr* const other = two->register_memory(memory, sizeof memory);
  const Request write = write_to(other, 0);
  if (side == Side::wrong) {
    two->give_up(other);
    ibv_dereg_mr(other);
  }
  post(two->qp, write, piece(two->region, 0, 64));  // remote-access.stale-key
  wait_for(two->cq);
};

constexpr Program remote_access_domain = [](Side side) {
  const auto two = pair();
  static std::byte memory[64];
  ibv_pd* const domain = side == Side::wrong ? ibv_alloc_pd(two->context) : two->pd;
  ibv_mr* const other = (ibv_reg_mr)(domain, memory, sizeof memory, static_cast<int>(all_rights));
  post(two->qp, write_to(other, 0), piece(two->region, 0, 64));  // remote-access.domain
  wait_for(two->cq);
  ibv_dereg_mr(other);
  if (side == Side::wrong) ibv_dealloc_pd(domain);
};

constexpr Program remote_access_byte_order = [](Side side) {
  const auto two = pair();
  Request write = write_to(two->region, 0);
  if (side == Side::wrong) write.remote_addr = htobe64(write.remote_addr);
  post(two->qp, write, piece(two->region, 64, 64));  // remote-access.byte-order
  wait_for(two->cq);
};

Request add_at(const Pair& two, std::size_t offset) {
  Request add = write_to(two.region, offset);
  add.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  return add;
}

constexpr Program remote_request_alignment = [](Side side) {
  const auto two = pair();
  const Request add = add_at(*two, side == Side::wrong ? 4 : 8);
  post(two->qp, add, piece(two->region, 64, 8));  // remote-request.alignment
  wait_for(two->cq);
};

constexpr Program remote_request_depth = [](Side side) {
  const auto two = pair_with({.max_dest_rd_atomic = static_cast<std::uint8_t>(side == Side::wrong ? 0 : 1)});
  post(two->qp, add_at(*two, 0), piece(two->region, 64, 8));  // remote-request.depth
  wait_for(two->cq);
};

constexpr Program remote_request_length = [](Side side) {
  const auto two = pair();
  post_receive(two->target, piece(two->region, 0, side == Side::wrong ? 32 : 64));
  post(two->qp, {}, piece(two->region, 64, 64));  // remote-request.length
  wait_for(two->cq);
};

constexpr Program receive_too_short = [](Side side) {
  const auto two = pair();
  post_receive(two->target, piece(two->region, 0, side == Side::wrong ? 32 : 64));  // receive-too-short
  post(two->qp, {}, piece(two->region, 64, 64));
  wait_for(two->target_cq);
};

constexpr Program remote_operation = [](Side side) {
  const auto two = pair();
  post_receive(two->target, piece(two->memory, 64, side == Side::wrong ? 12345 : two->region->lkey));
  post(two->qp, {}, piece(two->region, 64, 64));  // remote-operation
  wait_for(two->cq);
};

constexpr Program receive_protection = [](Side side) {
  const auto two = pair();
  static std::byte memory[64];
  ibv_mr* const other = two->register_memory(memory, sizeof memory, side == Side::wrong ? 0 : all_rights);
  post_receive(two->target, piece(other, 0, 64));  // receive-protection
  post(two->qp, {}, piece(two->region, 64, 64));
  wait_for(two->target_cq);
};

constexpr Program local_protection = [](Side side) {
  const auto two = pair();
  const std::size_t bytes = side == Side::wrong ? 65 : 64;
  post(two->qp, write_to(two->region, 0), piece(two->region, Pair::bytes - 64, bytes));  // local-protection
  wait_for(two->cq);
};

constexpr Program local_length = [](Side side) {
  const auto two = pair();
  post(two->qp, add_at(*two, 0), piece(two->region, 64, side == Side::wrong ? 4 : 8));  // local-length
  wait_for(two->cq);
};

constexpr Program read_depth_zero = [](Side side) {
  const auto two = pair_with({.max_rd_atomic = static_cast<std::uint8_t>(side == Side::wrong ? 0 : 1)});
  post(two->qp, add_at(*two, 0), piece(two->region, 64, 8));  // read-depth-zero
  wait_for(two->cq);
};

constexpr Program receiver_not_ready = [](Side side) {
  const auto two = pair_with({.rnr_retry = 1});
  if (side == Side::right) post_receive(two->target, piece(two->region, 0, 64));
  post(two->qp, {}, piece(two->region, 64, 64));  // receiver-not-ready
  wait_for(two->cq);
};

constexpr Program no_answer = [](Side side) {
  const auto two = pair_with({.timeout = static_cast<std::uint8_t>(side == Side::wrong ? 1 : 14),
                              .retry_cnt = static_cast<std::uint8_t>(side == Side::wrong ? 0 : 7),
                              .target_stays_in_init = side == Side::wrong});
  post(two->qp, write_to(two->region, 0), piece(two->region, 64, 64));  // no-answer
  wait_for(two->cq);
};

constexpr Program failed_completion = [](Side side) {
  const auto two = pair();
  Request request = write_to(two->region, 0);
  if (side == Side::wrong) request.opcode = IBV_WR_LOCAL_INV;  // of a key that no window has
  post(two->qp, request, piece(two->region, 64, 64));          // failed-completion
  wait_for(two->cq);
};

constexpr Program post_in_wrong_state = [](Side side) {
  const auto two = pair_with({.own_stays_in_init = side == Side::wrong});
  const int error =
      post(two->qp, write_to(two->region, 0), piece(two->region, 64, 64));  // post-in-wrong-state
  if (error == 0) wait_for(two->cq);
};

constexpr Program send_queue_stuck = [](Side side) {
  const auto two = pair();
  for (int i = 0; i < 9; ++i) {
    const bool signal = side == Side::right && i == 7;
    const unsigned flags = signal ? IBV_SEND_SIGNALED : 0;
    post(two->qp, write_to(two->region, 0, flags), piece(two->region, 64, 64));  // send-queue-stuck
    if (signal) wait_for(two->cq);
  }
};

constexpr Program send_queue_full = [](Side side) {
  const auto two = pair();
  for (int i = 0; i < 9; ++i) {
    post(two->qp, write_to(two->region, 0), piece(two->region, 64, 64));  // send-queue-full
    if (side == Side::right) wait_for(two->cq);
  }
};

constexpr Program receive_queue_full = [](Side side) {
  const auto two = pair();
  for (int i = 0; i < (side == Side::wrong ? 10 : 8); ++i)
    post_receive(two->target, piece(two->region, 0, 64));  // receive-queue-full
};

constexpr Program sge_limit = [](Side side) {
  const auto two = pair();
  ibv_sge pieces[3] = {piece(two->region, 64, 8), piece(two->region, 72, 8), piece(two->region, 80, 8)};
  ibv_send_wr wr{};
  wr.sg_list = pieces;
  wr.num_sge = side == Side::wrong ? 3 : 2;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma = {reinterpret_cast<std::uint64_t>(two->memory), two->region->rkey};
  ibv_send_wr* bad = nullptr;
  ibv_post_send(two->qp, &wr, &bad);  // sge-limit
};

constexpr Program inline_limit = [](Side side) {
  const auto two = pair();
  const std::size_t bytes = side == Side::wrong ? 65 : 64;
  post(two->qp, write_to(two->region, 0, IBV_SEND_INLINE), piece(two->region, 64, bytes));  // inline-limit
};

constexpr Program wrong_opcode = [](Side side) {
  const auto two = pair_with({.type = IBV_QPT_UC});
  Request request = write_to(two->region, 0);
  if (side == Side::wrong) request.opcode = IBV_WR_RDMA_READ;
  post(two->qp, request, piece(two->region, 64, 64));  // wrong-opcode
};

constexpr Program no_address_handle = [](Side side) {
  const auto two = pair_with({.type = IBV_QPT_UD});
  ibv_gid gid{};
  ibv_query_gid(two->context, 1, 0, &gid);
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid = gid;
  ibv_ah* const ah = side == Side::right ? ibv_create_ah(two->pd, &attr) : nullptr;
  ibv_sge sge = piece(two->region, 0, 64);
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud = {ah, two->target->qp_num, 1};
  ibv_send_wr* bad = nullptr;
  ibv_post_send(two->qp, &wr, &bad);  // no-address-handle
  if (ah != nullptr) ibv_destroy_ah(ah);
};

constexpr Program modify_refused = [](Side side) {
  const auto two = pair();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ibv_modify_qp(two->qp, &attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (side == Side::right) mask |= IBV_QP_ACCESS_FLAGS;
  ibv_modify_qp(two->qp, &attr, mask);  // modify-refused
};

constexpr Program missing_fence = [](Side side) {
  const auto two = pair();
  Request read = write_to(two->region, 1024);
  read.opcode = IBV_WR_RDMA_READ;
  post(two->qp, read, piece(two->region, 0, 64));
  const unsigned fence = side == Side::right ? IBV_SEND_FENCE : 0;
  const Request write = write_to(two->region, 2048, IBV_SEND_SIGNALED | fence);
  post(two->qp, write, piece(two->region, 32, 64));  // missing-fence
  wait_for(two->cq);
  wait_for(two->cq);
};

constexpr Program source_changed = [](Side side) {
  const auto two = pair();
  static std::byte memory[64];
  ibv_mr* const source = two->register_memory(memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  post(two->qp, write_to(two->region, 0), piece(source, 0, 64));  // source-changed
  if (side == Side::wrong) memory[3] = std::byte{1};
  wait_for(two->cq);
  memory[3] = std::byte{2};
};

constexpr Program cq_overrun = [](Side side) {
  const auto two = pair_with({.cqe = side == Side::wrong ? 3 : 4});
  for (int i = 0; i < 4; ++i) post(two->qp, write_to(two->region, 0), piece(two->region, 64, 64));
  ibv_wc wc[4];
  ibv_poll_cq(two->cq, 4, wc);  // cq-overrun
};

constexpr Program in_use = [](Side side) {
  const auto two = pair();
  ibv_pd* const pd = side == Side::wrong ? two->pd : ibv_alloc_pd(two->context);
  ibv_dealloc_pd(pd);  // in-use
};

constexpr Program destroyed_twice = [](Side side) {
  const auto two = pair();
  ibv_destroy_qp(two->qp);
  if (side == Side::wrong) ibv_destroy_qp(two->qp);  // destroyed-twice
  two->qp = nullptr;
};

constexpr Program region_in_use = [](Side side) {
  const auto two = pair();
  static std::byte memory[64];
  ibv_mr* const other = two->register_memory(memory, sizeof memory);
  post_receive(two->target, piece(other, 0, 64));
  if (side == Side::right) {
    post(two->qp, {}, piece(two->region, 0, 64));
    wait_for(two->target_cq);
  }
  two->give_up(other);
  ibv_dereg_mr(other);  // region-in-use
};

constexpr Program freed_in_flight = [](Side side) {
  const auto two = pair();
  void* const memory = std::malloc(64);
  ibv_mr* const other = two->register_memory(memory, 64);
  post_receive(two->target, piece(other, 0, 64));
  if (side == Side::right) {
    post(two->qp, {}, piece(two->region, 0, 64));
    wait_for(two->target_cq);
    two->give_up(other);
    ibv_dereg_mr(other);
  }
  std::free(memory);  // freed-in-flight
};

constexpr Program freed_while_registered = [](Side side) {
  const auto two = pair();
  void* const memory = std::malloc(64);
  ibv_mr* const other = two->register_memory(memory, 64);
  if (side == Side::right) {
    two->give_up(other);
    ibv_dereg_mr(other);
  }
  std::free(memory);  // freed-while-registered
};

// A piece of memory that is registered as a whole goes back to the allocator that has it.
constexpr Program frees_a_piece_of_a_region = [](Side) {
  const auto two = pair();
  char* const memory = static_cast<char*>(std::malloc(64));
  const auto page = reinterpret_cast<std::uintptr_t>(memory) & ~std::uintptr_t{4095};
  ibv_mr* const other = two->register_memory(reinterpret_cast<void*>(page), 8192);
  std::free(memory);
  two->give_up(other);
  ibv_dereg_mr(other);
};

// An allocator that gives memory back to the system calls munmap() while it holds its locks.
constexpr Program allocator_unmaps = [](Side) {
  const auto two = pair();
  for (int i = 0; i < 64; ++i) {
    void* volatile memory = std::malloc(8u << 20);
    std::free(memory);
  }
};

// Takes one event of the CQ of `two`.
void take_event(Pair& two) {
  ibv_req_notify_cq(two.cq, 0);
  post(two.qp, write_to(two.region, 0), piece(two.region, 64, 64));
  ibv_cq* of = nullptr;
  void* context = nullptr;
  ibv_get_cq_event(two.channel, &of, &context);
}

constexpr Program event_not_acknowledged = [](Side side) {
  const auto two = pair_with({.with_channel = true});
  take_event(*two);
  ibv_cq* const cq = two->cq;
  if (side == Side::right) ibv_ack_cq_events(cq, 1);
  if (side == Side::wrong) when_found([cq] { ibv_ack_cq_events(cq, 1); });
  ibv_destroy_qp(two->qp);
  two->qp = nullptr;
  ibv_destroy_cq(cq);  // event-not-acknowledged
  two->cq = nullptr;
};

constexpr Program acknowledged_too_many = [](Side side) {
  const auto two = pair_with({.with_channel = true});
  take_event(*two);
  ibv_ack_cq_events(two->cq, side == Side::wrong ? 2 : 1);  // acknowledged-too-many
  two->cq->comp_events_completed = 1;
};

constexpr Program slept_on_completion = [](Side side) {
  const auto two = pair_with({.with_channel = true});
  post(two->qp, write_to(two->region, 0), piece(two->region, 64, 64));
  ibv_req_notify_cq(two->cq, 0);
  if (side == Side::right) {
    wait_for(two->cq);
    return;
  }
  Pair* const both = two.get();
  when_found([both] { post(both->qp, write_to(both->region, 0), piece(both->region, 64, 64)); });
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  ibv_get_cq_event(two->channel, &cq, &context);  // slept-on-completion
  ibv_ack_cq_events(cq, 1);
};

constexpr Program leak_at_exit = [](Side side) {
  const auto two = pair();
  ibv_pd* const pd = ibv_alloc_pd(two->context);  // leak-at-exit
  if (side == Side::right) ibv_dealloc_pd(pd);
};

struct Row {
  std::string_view name;
  Program program;
};
constexpr Row rows[] = {
    {"remote-access.bounds", remote_access_bounds},
    {"remote-access.region-rights", remote_access_region_rights},
    {"remote-request.queue-pair-rights", remote_request_queue_pair_rights},
    {"remote-access.stale-key", remote_access_stale_key},
    {"remote-access.domain", remote_access_domain},
    {"remote-access.byte-order", remote_access_byte_order},
    {"remote-request.alignment", remote_request_alignment},
    {"remote-request.depth", remote_request_depth},
    {"remote-request.length", remote_request_length},
    {"remote-operation", remote_operation},
    {"local-protection", local_protection},
    {"receive-protection", receive_protection},
    {"local-length", local_length},
    {"receive-too-short", receive_too_short},
    {"read-depth-zero", read_depth_zero},
    {"receiver-not-ready", receiver_not_ready},
    {"no-answer", no_answer},
    {"failed-completion", failed_completion},
    {"post-in-wrong-state", post_in_wrong_state},
    {"send-queue-stuck", send_queue_stuck},
    {"send-queue-full", send_queue_full},
    {"receive-queue-full", receive_queue_full},
    {"sge-limit", sge_limit},
    {"inline-limit", inline_limit},
    {"wrong-opcode", wrong_opcode},
    {"no-address-handle", no_address_handle},
    {"modify-refused", modify_refused},
    {"missing-fence", missing_fence},
    {"source-changed", source_changed},
    {"cq-overrun", cq_overrun},
    {"in-use", in_use},
    {"destroyed-twice", destroyed_twice},
    {"region-in-use", region_in_use},
    {"freed-in-flight", freed_in_flight},
    {"freed-while-registered", freed_while_registered},
    {"frees-a-piece-of-a-region", frees_a_piece_of_a_region},
    {"allocator-unmaps", allocator_unmaps},
    {"event-not-acknowledged", event_not_acknowledged},
    {"acknowledged-too-many", acknowledged_too_many},
    {"slept-on-completion", slept_on_completion},
    {"leak-at-exit", leak_at_exit},
};

}  // namespace
}  // namespace weir::check_test

using namespace weir::check_test;

int main(int count, char** words) {
  if (count != 3) return 2;
  for (const Row& row : rows) {
    if (row.name != words[1]) continue;
    row.program(words[2] == std::string_view("wrong") ? Side::wrong : Side::right);
    return 0;
  }
  return 2;
}
