#include "verbs/trace/log_lines.hpp"

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace weir::verbs {
namespace {

[[gnu::format(printf, 2, 3)]] void add(std::string& to, const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  to += text;
}

void add_pieces(std::string& to, const char* preposition, std::span<const rnic::Sge> pieces) {
  for (const rnic::Sge& piece : pieces) {
    add(to, "%s %s 0x%" PRIx64, pieces.size() > 1 ? "," : "", preposition, piece.addr);
    if (pieces.size() > 1) add(to, " (%u)", piece.length);
    add(to, " key 0x%x", piece.lkey);
  }
}

bool has_remote(rnic::SendOpcode opcode) {
  using enum rnic::SendOpcode;
  return opcode == rdma_write || opcode == rdma_write_with_imm || opcode == rdma_read ||
         opcode == compare_and_swap || opcode == fetch_and_add || opcode == atomic_write;
}

template <class Opcode>
struct Named {
  Opcode opcode;
  const char* name;
};
template <class Opcode, std::size_t count>
const char* name_of(Opcode opcode, const Named<Opcode> (&names)[count]) {
  const auto* const found = std::ranges::find(names, opcode, &Named<Opcode>::opcode);
  return found != std::end(names) ? found->name : "?";
}

constexpr Named<rnic::WcOpcode> completed_names[] = {{rnic::WcOpcode::send, "SEND"},
                                                     {rnic::WcOpcode::rdma_write, "WRITE"},
                                                     {rnic::WcOpcode::rdma_read, "READ"},
                                                     {rnic::WcOpcode::compare_and_swap, "COMPARE_SWAP"},
                                                     {rnic::WcOpcode::fetch_and_add, "FETCH_ADD"},
                                                     {rnic::WcOpcode::bind_window, "BIND_MW"},
                                                     {rnic::WcOpcode::local_invalidate, "LOCAL_INV"},
                                                     {rnic::WcOpcode::recv, "RECV"},
                                                     {rnic::WcOpcode::recv_rdma_with_imm, "RECV_WRITE_IMM"},
                                                     {rnic::WcOpcode::atomic_write, "ATOMIC_WRITE"}};
constexpr Named<rnic::SendOpcode> posted_names[] = {{rnic::SendOpcode::rdma_write, "WRITE"},
                                                    {rnic::SendOpcode::rdma_write_with_imm, "WRITE_IMM"},
                                                    {rnic::SendOpcode::send, "SEND"},
                                                    {rnic::SendOpcode::send_with_imm, "SEND_IMM"},
                                                    {rnic::SendOpcode::rdma_read, "READ"},
                                                    {rnic::SendOpcode::compare_and_swap, "COMPARE_SWAP"},
                                                    {rnic::SendOpcode::fetch_and_add, "FETCH_ADD"},
                                                    {rnic::SendOpcode::local_invalidate, "LOCAL_INV"},
                                                    {rnic::SendOpcode::bind_window, "BIND_MW"},
                                                    {rnic::SendOpcode::send_with_invalidate, "SEND_INV"},
                                                    {rnic::SendOpcode::atomic_write, "ATOMIC_WRITE"}};

}  // namespace

const char* operation_name(rnic::SendOpcode opcode) { return name_of(opcode, posted_names); }

std::string registration_line(const ibv_mr& region, std::uint64_t iova, unsigned access) {
  constexpr struct {
    unsigned bit;
    const char* name;
  } rights[] = {{IBV_ACCESS_LOCAL_WRITE, "local-write"}, {IBV_ACCESS_REMOTE_WRITE, "remote-write"},
                {IBV_ACCESS_REMOTE_READ, "remote-read"}, {IBV_ACCESS_REMOTE_ATOMIC, "remote-atomic"},
                {IBV_ACCESS_MW_BIND, "windows"},         {IBV_ACCESS_ZERO_BASED, "zero-based"},
                {IBV_ACCESS_ON_DEMAND, "on-demand"},     {IBV_ACCESS_RELAXED_ORDERING, "relaxed"}};
  const auto address = reinterpret_cast<std::uint64_t>(region.addr);
  std::string text;
  add(text, "register 0x%" PRIx64 ": %zu bytes, key 0x%x,", address, region.length, region.lkey);
  if (iova != address) add(text, " remotely 0x%" PRIx64 ",", iova);
  for (const auto& right : rights)
    if (access & right.bit) add(text, " %s", right.name);
  if (text.back() == ',') text += " local-read";
  return text;
}

std::string posted_line(rnic::SendWqe& wqe, rnic::QpType type) {
  const std::span<const rnic::Sge> pieces(wqe.sges(), wqe.inlined ? 0u : wqe.num_sge);
  std::uint64_t bytes = wqe.inline_bytes;
  for (const rnic::Sge& piece : pieces) bytes += piece.length;
  std::string text;
  add(text, "post %s wr_id 0x%" PRIx64 ": %" PRIu64 " bytes", operation_name(wqe.opcode), wqe.wr_id, bytes);
  const bool comes_back =
      wqe.opcode >= rnic::SendOpcode::rdma_read && wqe.opcode <= rnic::SendOpcode::fetch_and_add;
  if (wqe.inlined) text += " inline";
  add_pieces(text, comes_back ? "into" : "from", pieces);
  if (has_remote(wqe.opcode)) add(text, ", remote 0x%" PRIx64 " key 0x%x", wqe.remote_addr, wqe.rkey);
  if (wqe.opcode == rnic::SendOpcode::compare_and_swap)
    add(text, ", compare 0x%" PRIx64 " swap 0x%" PRIx64, wqe.atomic.compare_add, wqe.atomic.swap);
  if (wqe.opcode == rnic::SendOpcode::fetch_and_add) add(text, ", add 0x%" PRIx64, wqe.atomic.compare_add);
  if (wqe.opcode == rnic::SendOpcode::rdma_write_with_imm || wqe.opcode == rnic::SendOpcode::send_with_imm)
    add(text, ", imm 0x%08x", be32toh(wqe.imm_be));
  if (wqe.opcode == rnic::SendOpcode::send_with_invalidate ||
      wqe.opcode == rnic::SendOpcode::local_invalidate)
    add(text, ", invalidate 0x%x", wqe.imm_be);
  if (type == rnic::QpType::ud)
    add(text, ", to %x qkey 0x%x", wqe.datagram.destination.value(), wqe.datagram.qkey);
  if (type == rnic::QpType::xrc_send) add(text, ", to SRQ %x", wqe.remote_srqn);
  text += wqe.signaled ? ", signaled" : "";
  text += wqe.solicited ? ", solicited" : "";
  return text;
}

std::string receive_line(std::uint64_t wr_id, std::span<const rnic::Sge> pieces) {
  std::uint64_t bytes = 0;
  for (const rnic::Sge& piece : pieces) bytes += piece.length;
  std::string text;
  add(text, "post RECV wr_id 0x%" PRIx64 ": %" PRIu64 " bytes", wr_id, bytes);
  add_pieces(text, "at", pieces);
  return text;
}

std::string parked_line(const rnic::SendWqe& wqe, rnic::Tracer::WaitsFor what) {
  std::string text;
  add(text, "wait %s wr_id 0x%" PRIx64 ": %s", operation_name(wqe.opcode), wqe.wr_id,
      what == rnic::Tracer::WaitsFor::receive ? "the peer has posted no receive (RNR)"
                                              : "the peer does not answer");
  return text;
}

std::string completion_line(const rnic::WorkCompletion& wc) {
  std::string text;
  // After an error only wr_id and qp_num are valid besides the status (ibv_poll_cq(3)).
  if (wc.status != rnic::WcStatus::success) {
    add(text, "comp wr_id 0x%" PRIx64 ": %s", wc.wr_id,
        ibv_wc_status_str(static_cast<ibv_wc_status>(wc.status)));
    return text;
  }
  add(text, "comp %s wr_id 0x%" PRIx64 ": success", name_of(wc.opcode, completed_names), wc.wr_id);
  const bool received = wc.opcode == rnic::WcOpcode::recv || wc.opcode == rnic::WcOpcode::recv_rdma_with_imm;
  if (received || wc.opcode == rnic::WcOpcode::rdma_read) add(text, ", %u bytes", wc.byte_len);
  if (received) add(text, ", from %x", wc.src_qpn);
  if (wc.has_imm) add(text, ", imm 0x%08x", be32toh(wc.imm_be));
  if (wc.has_invalidated) add(text, ", invalidated 0x%x", wc.imm_be);
  return text;
}

}  // namespace weir::verbs
