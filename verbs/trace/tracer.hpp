// `weir trace` inside the traced program: writes the NIC's requests and their results
// as a log and as packets.
//
// Each event is written before the call that caused it returns. If the program ends by _exit, a signal or
// execve, the file holds everything up to then.
//
// The launcher configures it through the environment. Without that there is no tracer, and queue pairs test a
// null pointer. Threading: the NIC's threads call in; one leaf mutex serializes what they write.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rnic/adapter.hpp"
#include "verbs/nic/nic_process.hpp"
#include "verbs/trace/packets.hpp"
#include "verbs/trace/trace_file.hpp"

namespace weir::verbs {

inline constexpr char trace_log_variable[] = "WEIR_TRACE_LOG";    // path of the log, "-": standard error
inline constexpr char trace_pcap_variable[] = "WEIR_TRACE_PCAP";  // path of the packets
// Numbers or indices of queue pairs, comma-separated; unset: all.
inline constexpr char trace_qps_variable[] = "WEIR_TRACE_QPS";
inline constexpr char trace_limit_variable[] = "WEIR_TRACE_LIMIT";  // bytes of each file
inline constexpr char trace_snap_variable[] = "WEIR_TRACE_SNAP";    // bytes kept of a packet

struct TraceWish {
  std::string log, pcap;
  std::vector<std::uint32_t> qps;
  std::uint64_t limit_bytes = 1ull << 30;
  std::size_t snap_bytes = SIZE_MAX;
};
// What the environment configures; nullopt: no tracing.
std::optional<TraceWish> trace_wish(const char* (*variable)(const char*));

class VerbsTracer final : public rnic::Tracer {
 public:
  VerbsTracer(NicProcess&, TraceWish);

  void posted(const rnic::QueuePair&, rnic::SendWqe&) override;
  void finished(const rnic::QueuePair&, rnic::SendWqe&, rnic::WcStatus) override;
  void parked(const rnic::QueuePair&, rnic::SendWqe&, WaitsFor, std::uint32_t rnr_timer) override;
  void receive_posted(const rnic::QueuePair&, std::uint64_t wr_id, std::span<const rnic::Sge>) override;
  void receive_posted(rnic::Qpn srq, std::uint64_t wr_id, std::span<const rnic::Sge>) override;
  void polled(const rnic::WorkCompletion&) override;
  void on_wire(std::span<const rnic::WirePacket>) override;
  void forgotten(const rnic::QueuePair&) override;

  // Lines that other parts of this process add: connection management.
  bool logs() const { return log_.has_value(); }
  void line(rnic::Qpn, const std::string& text);
  // Of a device and no queue pair; left out where only some queue pairs are wanted.
  void line(const char* device, const std::string& text);

  // Writes how many records were dropped.
  void finish();

 private:
  bool wanted(rnic::Qpn) const;
  void log(rnic::Qpn, const std::string& line);
  void log(const char* device, const std::string& number, const std::string& line);
  Conversation& conversation(const rnic::QueuePair&, const rnic::SendWqe&);
  std::vector<std::byte> payload_of(const rnic::QueuePair&, rnic::SendWqe&) const;
  void write_packet(std::span<const std::byte> packet, std::uint64_t time_ns);

  NicProcess& nic_;
  const TraceWish wish_;
  std::mutex mutex_;
  std::optional<TraceFile> log_, pcap_;
  std::map<std::uint32_t, std::string> devices_;  // by QPN
  std::map<std::uint32_t, Conversation> conversations_;
};

// A line that belongs to no queue pair, if this process is traced.
void trace_line(const char* device, const std::string& text);

// Call it before the NIC's first queue pair: traces the NIC if the environment says so. Once per NIC.
void trace_if_wanted(NicProcess&);

}  // namespace weir::verbs
