// `weir trace`, from inside the traced program: writes what the NIC is asked for and what comes of it as a
// log and as packets.
//
// Each event is written before the call that brought it goes on: a program that ends by _exit, by a signal or
// by execve has in the file what it did until then.
//
// The launcher says by environment what is wanted; without it there is no tracer, and queue pairs look at a
// null pointer. Threading: the NIC's threads call in; one mutex, which is a leaf, orders what they write.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rnic/adapter.hpp"
#include "verbs/progress/nic_process.hpp"
#include "verbs/trace/packets.hpp"
#include "verbs/trace/trace_file.hpp"

namespace weir::verbs {

inline constexpr char trace_log_variable[] = "WEIR_TRACE_LOG";    // path of the log, "-": standard error
inline constexpr char trace_pcap_variable[] = "WEIR_TRACE_PCAP";  // path of the packets
// Numbers or indices, comma-separated; none: all.
inline constexpr char trace_qps_variable[] = "WEIR_TRACE_QPS";
inline constexpr char trace_limit_variable[] = "WEIR_TRACE_LIMIT";  // bytes of each file
inline constexpr char trace_snap_variable[] = "WEIR_TRACE_SNAP";    // bytes kept of a packet

struct TraceWish {
  std::string log, pcap;
  std::vector<std::uint32_t> qps;
  std::uint64_t limit_bytes = 1ull << 30;
  std::size_t snap_bytes = SIZE_MAX;
};
// What the environment asks for; nullopt: nothing.
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

  // What others of this process have to say: connection management.
  bool logs() const { return log_.has_value(); }
  void line(rnic::Qpn, const std::string& text);

  // Says how much is missing.
  void finish();

 private:
  bool wanted(rnic::Qpn) const;
  void log(rnic::Qpn, const std::string& line);
  void log(const char* device, rnic::Qpn number, const std::string& line);
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

// Before the NIC's first queue pair: traces it if the environment says so. Once for each NIC.
void trace_if_wanted(NicProcess&);

}  // namespace weir::verbs
