#include "verbs/trace/tracer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "rnic/memory/trapped_copy.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/private_link.hpp"
#include "verbs/trace/log_lines.hpp"
#include "verbs/trace/routes.hpp"
#include "wire/pcapng.hpp"

namespace weir::verbs {
namespace {

std::uint64_t time_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::string time_text(std::uint64_t time_ns) {
  const auto seconds = static_cast<std::time_t>(time_ns / 1'000'000'000);
  std::tm day{};
  ::localtime_r(&seconds, &day);
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%06u", day.tm_hour, day.tm_min, day.tm_sec,
                static_cast<unsigned>(time_ns % 1'000'000'000 / 1000));
  return text;
}

std::string hexadecimal(rnic::Qpn number) {
  char text[16];
  std::snprintf(text, sizeof text, "%x", number.value());
  return text;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

const Qp* verbs_object(const rnic::QueuePair& qp) { return static_cast<const Qp*>(qp.config().cookie); }

const ibv_context* context_of(const rnic::QueuePair& qp) {
  const void* const object = qp.config().cookie;
  if (object == nullptr) return nullptr;
  if (qp.config().type == rnic::QpType::work_queue) return static_cast<const Wq*>(object)->wq.context;
  return static_cast<const Qp*>(object)->ex.qp_base.context;
}

// Real packets are then written as they pass (on_wire), and no packets are made up for the request.
bool goes_by_wire(const rnic::QueuePair& qp, const rnic::SendWqe& wqe) {
  if (qp.config().type == rnic::QpType::ud)
    return wqe.datagram.path != nullptr && wqe.datagram.path->packet_bytes != 0;
  return qp.attributes().path.via == rnic::Via::packets;
}

}  // namespace

std::optional<TraceWish> trace_wish(const char* (*variable)(const char*)) {
  const auto text = [&](const char* name) {
    const char* const value = variable(name);
    return std::string(value != nullptr ? value : "");
  };
  const auto number = [&](const char* name, auto& into) {
    const std::string value = text(name);
    std::from_chars(value.data(), value.data() + value.size(), into);
  };
  TraceWish wish;
  wish.log = text(trace_log_variable);
  wish.pcap = text(trace_pcap_variable);
  if (wish.log.empty() && wish.pcap.empty()) return std::nullopt;
  number(trace_limit_variable, wish.limit_bytes);
  number(trace_snap_variable, wish.snap_bytes);
  const std::string qps = text(trace_qps_variable);
  for (const char *at = qps.data(), *end = at + qps.size(); at < end;) {
    std::uint32_t qpn = 0;
    const auto read = std::from_chars(at, end, qpn);
    if (read.ec == std::errc{}) wish.qps.push_back(qpn);
    at = std::find(read.ptr, end, ',') + 1;
  }
  return wish;
}

VerbsTracer::VerbsTracer(NicProcess& nic, TraceWish wish) : nic_(nic), wish_(std::move(wish)) {
  const auto open = [&](const std::string& path, std::vector<std::byte> head) -> std::optional<TraceFile> {
    if (path.empty()) return std::nullopt;
    auto file = TraceFile::open(path, wish_.limit_bytes, std::move(head));
    if (!file) std::fprintf(stderr, "weir trace: cannot write %s: %s\n", path.c_str(), std::strerror(errno));
    return file;
  };
  log_ = open(wish_.log, {});
  pcap_ = open(wish_.pcap, wire::pcapng_section("weir trace", "weir"));
}

// Matches the whole number or the index in its lower bits: the first queue pair of a process has 2.
bool VerbsTracer::wanted(rnic::Qpn qpn) const {
  return wish_.qps.empty() || std::ranges::any_of(wish_.qps, [&](std::uint32_t wish) {
           return wish == qpn.value() || (wish < rnic::max_qps && wish == qpn.index());
         });
}

void VerbsTracer::posted(const rnic::QueuePair& qp, rnic::SendWqe& wqe) {
  if (!log_ || !wanted(qp.qpn())) return;
  const std::string line = posted_line(wqe, qp.config().type);
  const std::lock_guard lock(mutex_);
  if (const ibv_context* const context = context_of(qp))
    devices_.try_emplace(qp.qpn().value(), context->device->name);
  log(qp.qpn(), line);
}

void VerbsTracer::receive_posted(const rnic::QueuePair& qp, std::uint64_t wr_id,
                                 std::span<const rnic::Sge> sges) {
  if (!log_ || !wanted(qp.qpn())) return;
  const std::string line = receive_line(wr_id, sges);
  const std::lock_guard lock(mutex_);
  if (const ibv_context* const context = context_of(qp))
    devices_.try_emplace(qp.qpn().value(), context->device->name);
  log(qp.qpn(), line);
}

// Receives of an SRQ belong to the NIC, not to a device: all devices of `weir run --devices` are the one NIC.
void VerbsTracer::receive_posted(rnic::Qpn srq, std::uint64_t wr_id, std::span<const rnic::Sge> sges) {
  if (!log_ || !wish_.qps.empty()) return;
  const std::string line = "srq " + receive_line(wr_id, sges);
  const std::lock_guard lock(mutex_);
  log("-", hexadecimal(srq), line);
}

void VerbsTracer::polled(const rnic::WorkCompletion& wc) {
  const rnic::Qpn qpn(wc.qpn);
  if (!log_ || !wanted(qpn)) return;
  const std::string line = completion_line(wc);
  const std::lock_guard lock(mutex_);
  log(qpn, line);
}

void VerbsTracer::line(rnic::Qpn qpn, const std::string& text) {
  if (!log_ || !wanted(qpn)) return;
  const std::lock_guard lock(mutex_);
  log(qpn, text);
}

void VerbsTracer::line(const char* device, const std::string& text) {
  if (!log_ || !wish_.qps.empty()) return;
  const std::lock_guard lock(mutex_);
  log(device, "-", text);
}

void VerbsTracer::finished(const rnic::QueuePair& qp, rnic::SendWqe& wqe, rnic::WcStatus status) {
  if (!pcap_ || !wanted(qp.qpn()) || status == rnic::WcStatus::wr_flush_err) return;
  if (goes_by_wire(qp, wqe)) return;
  const std::vector<std::byte> payload = payload_of(qp, wqe);
  const std::uint64_t now_ns = time_now_ns();
  const std::lock_guard lock(mutex_);
  if (qp.config().type == rnic::QpType::raw_packet) {  // the packet itself
    if (status == rnic::WcStatus::success) write_packet(payload, now_ns);
  } else {
    packets_of(conversation(qp, wqe), wqe, status, payload,
               [&](const wire::Frame& frame) { write_packet(wire::encode(frame), now_ns); });
  }
  pcap_->flush();
}

void VerbsTracer::parked(const rnic::QueuePair& qp, rnic::SendWqe& wqe, WaitsFor what,
                         std::uint32_t rnr_timer) {
  if (!wanted(qp.qpn())) return;
  const std::uint64_t now_ns = time_now_ns();
  const std::vector<std::byte> payload = pcap_ ? payload_of(qp, wqe) : std::vector<std::byte>{};
  const std::lock_guard lock(mutex_);
  if (log_) log(qp.qpn(), parked_line(wqe, what));
  if (pcap_ && what == WaitsFor::receive)
    packets_of_refusal(conversation(qp, wqe), wqe, payload, static_cast<std::uint8_t>(rnr_timer),
                       [&](const wire::Frame& frame) { write_packet(wire::encode(frame), now_ns); });
  if (pcap_) pcap_->flush();
}

void VerbsTracer::on_wire(std::span<const rnic::WirePacket> packets) {
  if (!pcap_) return;
  const std::uint64_t now_ns = time_now_ns();
  const std::lock_guard lock(mutex_);
  for (const rnic::WirePacket& packet : packets)
    if (wanted(packet.own)) write_packet(wire::encapsulate(route_of(packet), packet.bytes), now_ns);
  pcap_->flush();
}

void VerbsTracer::forgotten(const rnic::QueuePair& qp) {
  const std::lock_guard lock(mutex_);
  conversations_.erase(qp.qpn().value());
}

// Call this and the functions below with mutex_ held.
void VerbsTracer::log(rnic::Qpn qpn, const std::string& line) {
  const auto device = devices_.find(qpn.value());
  log(device != devices_.end() ? device->second.c_str() : "-", hexadecimal(qpn), line);
}

void VerbsTracer::log(const char* device, const std::string& number, const std::string& line) {
  char start[128];
  std::snprintf(start, sizeof start, "%s %d %s %s ", time_text(time_now_ns()).c_str(),
                static_cast<int>(::getpid()), device, number.c_str());
  log_->append(bytes_of(start + line + "\n"));
  log_->flush();
}

Conversation& VerbsTracer::conversation(const rnic::QueuePair& qp, const rnic::SendWqe& wqe) {
  const auto [found, made] = conversations_.try_emplace(qp.qpn().value());
  Conversation& with = found->second;
  const Qp* const object = verbs_object(qp);
  if (made) {
    with.type = qp.config().type;
    with.own = qp.qpn();
    with.peer = qp.attributes().destination;
    with.mtu = with.type == rnic::QpType::ud ? rnic::max_datagram_bytes : mtu_bytes(object->attr.path_mtu);
    with.psn = object->attr.sq_psn & 0xffffff;
    if (with.type != rnic::QpType::ud) with.there = route_of(object->attr.ah_attr, with.own);
  }
  if (with.type == rnic::QpType::ud)
    with.there = route_of(wqe.datagram.path != nullptr ? wqe.datagram.path->grh.data() : nullptr, with.own);
  with.back = reversed(with.there);
  return with;
}

// The memory was checked before execution, and the NIC owns it until its completion is polled. Memory that
// the program has unmapped since is shown as zeros.
std::vector<std::byte> VerbsTracer::payload_of(const rnic::QueuePair& qp, rnic::SendWqe& wqe) const {
  if (wqe.inlined) return {wqe.inline_data(), wqe.inline_data() + wqe.inline_bytes};
  if (wqe.opcode == rnic::SendOpcode::bind_window || wqe.opcode == rnic::SendOpcode::local_invalidate)
    return {};
  const rnic::ProtectionTable& table = nic_.adapter().table();
  std::vector<std::byte> payload;
  for (const rnic::Sge& sge : std::span(wqe.sges(), wqe.num_sge)) {
    if (sge.length == 0 || !table.allows(sge, qp.config().pd, rnic::Use::read)) continue;
    const auto* from = static_cast<const std::byte*>(
        rnic::ProtectionTable::address(table.entry(sge.lkey), sge.addr, rnic::Use::read));
    const std::size_t begin = payload.size();
    payload.resize(begin + sge.length);
    const iovec piece{const_cast<std::byte*>(from), sge.length};
    (void)rnic::try_copy({&piece, 1}, {}, [&] { std::memcpy(payload.data() + begin, from, sge.length); });
  }
  const bool atomic =
      wqe.opcode == rnic::SendOpcode::compare_and_swap || wqe.opcode == rnic::SendOpcode::fetch_and_add;
  if (atomic && payload.size() > rnic::atomic_bytes) payload.resize(rnic::atomic_bytes);
  return payload;
}

void VerbsTracer::write_packet(std::span<const std::byte> packet, std::uint64_t time_ns) {
  std::vector<std::byte> block;
  wire::append_pcapng_packet(block, time_ns, packet, wish_.snap_bytes);
  pcap_->append(block);
}

void VerbsTracer::finish() {
  const std::lock_guard lock(mutex_);
  const auto report = [&](const TraceFile& file, const std::string& path, const char* what) {
    if (file.dropped() == 0) return;
    char text[512];
    std::snprintf(
        text, sizeof text,
        "weir trace: process %d: %llu %s are not in %s: it reached its limit of %llu bytes, or could not be "
        "written\n",
        static_cast<int>(::getpid()), static_cast<unsigned long long>(file.dropped()), what, path.c_str(),
        static_cast<unsigned long long>(wish_.limit_bytes));
    std::fputs(text, stderr);
    if (log_ && wish_.log != "-") log_->append_regardless(bytes_of(text));
  };
  if (log_) report(*log_, wish_.log, "events");
  if (pcap_) report(*pcap_, wish_.pcap, "packets");
}

// ---- the process's tracer

namespace {

struct Installed {
  std::mutex mutex;
  VerbsTracer* tracer = nullptr;
  pid_t pid = 0;
};
// Never destroyed, like the NIC.
Installed& installed() {
  static auto* one = new Installed;
  return *one;
}

VerbsTracer* tracer_of_this_process() {
  Installed& one = installed();
  const std::lock_guard lock(one.mutex);
  return one.pid == ::getpid() ? one.tracer : nullptr;
}

void finish_at_exit() {
  if (installed().tracer != nullptr && installed().pid == ::getpid()) installed().tracer->finish();
}

}  // namespace

void trace_line(const char* device, const std::string& text) {
  if (VerbsTracer* const tracer = tracer_of_this_process()) tracer->line(device, text);
}

void trace_if_wanted(NicProcess& nic) {
  Installed& one = installed();
  const std::lock_guard lock(one.mutex);
  if (nic.adapter().tracer() != nullptr) return;
  auto wish = trace_wish([](const char* name) { return static_cast<const char*>(::secure_getenv(name)); });
  if (!wish) return;
  if (one.pid == 0) std::atexit(finish_at_exit);
  // A forked child has its own NIC. The parent's tracer and the records in its buffer stay the parent's.
  one.tracer = new VerbsTracer(nic, std::move(*wish));
  one.pid = ::getpid();
  nic.adapter().set_tracer(one.tracer);
}

}  // namespace weir::verbs

using namespace weir::verbs;

bool weir_trace_logs() {
  const VerbsTracer* const tracer = tracer_of_this_process();
  return tracer != nullptr && tracer->logs();
}

void weir_trace_line(std::uint32_t qpn, const char* line) {
  if (VerbsTracer* const tracer = tracer_of_this_process()) tracer->line(weir::rnic::Qpn(qpn), line);
}
