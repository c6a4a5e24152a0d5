#include "rnic/between_hosts/packet_batch.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "rnic/memory/copy.hpp"
#include "rnic/memory/per_thread.hpp"
#include "rnic/memory/trapped_copy.hpp"

namespace weir::rnic {
namespace {

constexpr std::size_t batch_bytes = 128 * 1024;
constexpr std::size_t longest_run_bytes = 65'507;  // the largest UDP payload before the kernel cuts it

// A process that exits still sends answers.
struct Staging {
  std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(batch_bytes);
  std::vector<PacketRun> runs;
};

}  // namespace

PacketBatch::PacketBatch(HostPort& host, const PacketRoute& route, const wire::IcrcRoute& icrc)
    : host_(host),
      route_(route),
      icrc_(icrc),
      run_limit_(std::max<std::size_t>(host.packets_in_run(route), 1)),
      bytes_(per_thread<Staging>().bytes.get()),
      runs_(per_thread<Staging>().runs) {
  runs_.clear();
}

bool PacketBatch::continues_run(std::size_t bytes) const {
  if (run_closed_) return false;
  const PacketRun& run = runs_.back();
  return bytes <= run.segment && run.bytes.size() / run.segment < run_limit_ &&
         run.bytes.size() + bytes <= longest_run_bytes;
}

bool PacketBatch::add(const packet::Outgoing& packet) {
  const std::size_t bytes = packet.udp_payload();
  if (used_ + bytes > batch_bytes) send();
  std::byte* const at = bytes_ + used_;
  std::memcpy(at, packet.header.data(), packet.header_bytes);
  std::byte* const payload = at + packet.header_bytes;
  if (packet.payload_bytes != 0) {
    const auto copy = [&] { copy_gather(payload, packet.payload()); };
    if (packet.is_ours)
      copy();
    else if (try_copy(packet.payload(), {}, copy) != Trapped::no)
      return false;
  }
  std::memset(payload + packet.payload_bytes, 0, packet.pad);

  const bool behind = continues_run(bytes);
  const std::size_t place = behind ? runs_.back().bytes.size() / runs_.back().segment : 0;
  seal({at, bytes}, static_cast<std::uint16_t>(place));

  if (behind) {
    PacketRun& run = runs_.back();
    run_closed_ = bytes < run.segment;
    run.bytes = {run.bytes.data(), run.bytes.size() + bytes};
  } else {
    runs_.push_back({{at, bytes}, static_cast<std::uint16_t>(bytes)});
    run_closed_ = run_limit_ == 1;
  }
  used_ += bytes;
  return true;
}

// `place`: index in the run; the kernel numbers its packets from 0. Packets on this host carry no ICRC.
void PacketBatch::seal(std::span<std::byte> packet, std::uint16_t place) const {
  const std::size_t covered = packet.size() - wire::icrc_bytes;
  std::array<std::byte, wire::icrc_bytes> sum{};
  if (route_.process == 0) sum = icrc_.of(packet.first(covered), place);
  std::memcpy(packet.data() + covered, sum.data(), sum.size());
}

void PacketBatch::send() {
  if (!runs_.empty()) host_.send_packets(route_, runs_);
  runs_.clear();
  used_ = 0;
  run_closed_ = true;
}

}  // namespace weir::rnic
