// One end: a send queue, a target, and the model of the expected result.
#include <algorithm>
#include <cstring>

#include "bottle.hpp"
#include "wire/byte_order.hpp"

namespace weir::rnic::packet::test {
namespace {

bool writes(SendOpcode opcode) {
  return opcode == SendOpcode::rdma_write || opcode == SendOpcode::rdma_write_with_imm;
}
bool is_atomic(SendOpcode opcode) {
  return opcode == SendOpcode::fetch_and_add || opcode == SendOpcode::compare_and_swap;
}

std::uint64_t result_of(SendOpcode opcode, std::uint64_t compare_add, std::uint64_t swap,
                        std::uint64_t before) {
  if (opcode == SendOpcode::fetch_and_add) return before + compare_add;
  return before == compare_add ? swap : before;
}

// Random once; each test begins anew with it.
const std::vector<std::byte>& pattern() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> random(memory_bytes + exposed_bytes);
    std::mt19937 generator(7);
    for (std::byte& each : random) each = static_cast<std::byte>(generator());
    return random;
  }();
  return bytes;
}

}  // namespace

End::End(const Options& options)
    : receives_left(options.receives),
      memory(pattern().begin(), pattern().begin() + memory_bytes),
      exposed(pattern().begin() + memory_bytes, pattern().end()),
      model_exposed(exposed),
      service_(options.service) {}

void End::post(End& other, const Operation& op) {
  operations.push_back(op);
  std::vector<std::byte> fetched;
  const auto source = std::span(memory).subspan(op.local, op.length);
  const auto target = std::span(other.model_exposed).subspan(op.remote, op.length);
  const bool sends = op.opcode == SendOpcode::send || op.opcode == SendOpcode::send_with_imm ||
                     op.opcode == SendOpcode::send_with_invalidate;
  if (op.opcode == SendOpcode::rdma_read) fetched.assign(target.begin(), target.end());
  if (writes(op.opcode) || op.opcode == SendOpcode::atomic_write) std::ranges::copy(source, target.begin());
  if (is_atomic(op.opcode)) {
    std::uint64_t before = 0;
    std::memcpy(&before, target.data(), sizeof before);
    fetched.assign(target.begin(), target.end());
    const std::uint64_t after = result_of(op.opcode, op.compare_add, op.swap, before);
    std::memcpy(target.data(), &after, sizeof after);
  }
  expected_fetches_.push_back(std::move(fetched));
  if (!sends && op.opcode != SendOpcode::rdma_write_with_imm) return;
  Message message;
  if (sends) message.data.assign(source.begin(), source.end());
  if (op.opcode == SendOpcode::send_with_invalidate)
    message.invalidate = op.imm;
  else if (op.opcode != SendOpcode::send)
    message.imm_be = op.imm;
  message.solicited = op.solicited;
  message.byte_len = op.length;
  message.srqn = op.srqn;
  other.expected_messages.push_back(std::move(message));
}

WcStatus End::look_up(std::uint32_t wqe, WorkRequest& request, Gather& pieces) {
  const Operation& op = operations.at(wqe);
  const std::uint32_t rkey = op.rkey == exposed_key ? key_of(op.srqn) : op.rkey;
  request = {op.opcode, op.solicited,   op.fence, op.imm,  exposed_at + op.remote,
             rkey,      op.compare_add, op.swap,  op.srqn, op.signaled};
  std::byte* at = memory.data() + op.local;
  for (std::size_t left = op.length; left > 0;) {
    const std::size_t size = op.in_pieces && pieces.count + 1 < max_sge ? (left + 2) / 3 : left;
    pieces.pieces[pieces.count++] = {at, size};
    at += size;
    left -= size;
  }
  pieces.bytes = op.length;
  return WcStatus::success;
}

bool End::scatter(std::uint32_t wqe, const Gather& pieces, std::uint64_t offset,
                  std::span<const std::byte> bytes) {
  if (offset + bytes.size() > pieces.bytes) wrong.push_back("scatter beyond a work request");
  // The pieces of a work request are contiguous here.
  std::ranges::copy(bytes, memory.begin() + static_cast<std::ptrdiff_t>(operations.at(wqe).local + offset));
  return true;
}

void End::complete(std::uint32_t wqe, WcStatus status, std::uint64_t) {
  if (wqe != completions.size()) wrong.push_back("completion " + std::to_string(wqe) + " out of order");
  completions.push_back(status);
  if (status != WcStatus::success) return;
  const auto& expected = expected_fetches_.at(wqe);
  const auto fetched = std::span(memory).subspan(operations.at(wqe).local, expected.size());
  if (!std::ranges::equal(fetched, expected)) wrong.push_back("what came back to " + std::to_string(wqe));
}

Verdict End::select(std::uint32_t srqn) {
  if (service_ != wire::Service::xrc) wrong.push_back("an SRQ was selected");
  selected_ = srqn;
  return Verdict::done;
}

Verdict End::reachable(std::uint32_t srqn, std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) {
  if (length == 0) return Verdict::done;
  if (rkey == key_of(srqn) && addr >= exposed_at && addr + length <= exposed_at + exposed_bytes)
    return Verdict::done;
  ++refused;
  return Verdict::nak_access;
}

Verdict End::take_receive() {
  if (receives_left == 0) {
    if (on_rnr) on_rnr();
    return Verdict::rnr;
  }
  --receives_left;
  return Verdict::done;
}

Verdict End::begin_send() {
  landing_.clear();
  sending_ = true;
  return take_receive();
}

Verdict End::begin_write(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) {
  sending_ = false;
  begun_bytes_ = length;
  const Verdict verdict = reachable(selected_, addr, rkey, length);
  writing_ = verdict == Verdict::done && length != 0 ? exposed.data() + (addr - exposed_at) : nullptr;
  return verdict;
}

Verdict End::append(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) wrong.push_back("an empty append");
  if (!sending_) {
    if (offset + bytes.size() > begun_bytes_) {
      wrong.push_back("a WRITE beyond its length");
      return Verdict::nak_invalid;
    }
    std::ranges::copy(bytes, writing_ + offset);
    return Verdict::done;
  }
  if (offset + bytes.size() > receive_bytes) {
    ++refused;
    return Verdict::nak_invalid;
  }
  if (offset > landing_.size()) wrong.push_back("a gap in a message");
  landing_.resize(offset + bytes.size());
  std::ranges::copy(bytes, landing_.begin() + static_cast<std::ptrdiff_t>(offset));
  return Verdict::done;
}

Verdict End::finish(const Ending& ending) {
  if (!sending_ && !ending.imm_be) return Verdict::done;
  if (!sending_)
    if (const Verdict taken = take_receive(); taken != Verdict::done) return taken;
  ++messages;
  if (expected_messages.empty()) {
    wrong.push_back("a message that nobody sent");
    return Verdict::done;
  }
  const Message expected = std::move(expected_messages.front());
  expected_messages.pop_front();
  if ((sending_ && landing_ != expected.data) || ending.imm_be != expected.imm_be ||
      ending.invalidate != expected.invalidate || ending.solicited != expected.solicited ||
      ending.byte_len != expected.byte_len || selected_ != expected.srqn)
    wrong.push_back("message " + std::to_string(messages - 1));
  landing_.clear();
  return Verdict::done;
}

Verdict End::check_read(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) {
  return reachable(selected_, addr, rkey, length);
}

Verdict End::read(std::uint32_t srqn, std::uint64_t addr, std::uint32_t rkey, std::uint32_t length,
                  std::span<iovec> room, std::uint32_t& used) {
  if (const Verdict verdict = reachable(srqn, addr, rkey, length); verdict != Verdict::done) return verdict;
  room[used++] = {exposed.data() + (addr - exposed_at), length};
  return Verdict::done;
}

Verdict End::atomic(SendOpcode opcode, std::uint64_t addr, std::uint32_t rkey, std::uint64_t compare_add,
                    std::uint64_t swap, std::uint64_t& before) {
  if (const Verdict verdict = reachable(selected_, addr, rkey, atomic_bytes); verdict != Verdict::done)
    return verdict;
  std::byte* word = exposed.data() + (addr - exposed_at);
  std::memcpy(&before, word, sizeof before);
  const std::uint64_t after = result_of(opcode, compare_add, swap, before);
  std::memcpy(word, &after, sizeof after);
  return Verdict::done;
}

Verdict End::atomic_write(std::uint64_t addr, std::uint32_t rkey,
                          std::span<const std::byte, atomic_bytes> value) {
  if (const Verdict verdict = reachable(selected_, addr, rkey, atomic_bytes); verdict != Verdict::done)
    return verdict;
  std::ranges::copy(value, exposed.data() + (addr - exposed_at));
  return Verdict::done;
}

}  // namespace weir::rnic::packet::test
