#include "rnic/between_hosts/packet_batch.hpp"

#include <algorithm>
#include <memory>

#include "rnic/between_hosts/laid_out.hpp"
#include "rnic/memory/per_thread.hpp"

namespace weir::rnic {
namespace {

constexpr std::size_t batch_bytes = 128 * 1024;

// A process that exits still sends answers.
struct Staging {
  std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(batch_bytes);
  std::vector<PacketRun> runs;
};

}  // namespace

PacketBatch::PacketBatch(HostPort& host, const PacketRoute& route, const wire::IcrcRoute& icrc,
                         std::size_t longest_run, DepartureStage* stage)
    : host_(host),
      route_(route),
      icrc_(icrc),
      stage_(stage),
      run_limit_(std::max<std::size_t>(std::min(host.packets_in_run(route), longest_run), 1)),
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

bool PacketBatch::add(const packet::Outgoing& packet, DepartureStage::Place& place) {
  const bool waits = stage_ != nullptr && used_ == 0 && stage_->holds() && DepartureStage::is_short(packet);
  if (waits) return stage_->add(route_, icrc_, packet, run_limit_, place);
  if (used_ == 0) place.settle();
  return add(packet);
}

bool PacketBatch::add(const packet::Outgoing& packet) {
  const std::size_t bytes = packet.udp_payload();
  if (used_ + bytes > batch_bytes) send();
  std::byte* const at = bytes_ + used_;
  if (!lay_out(packet, at)) return false;
  const bool behind = continues_run(bytes);
  const std::size_t place = behind ? runs_.back().bytes.size() / runs_.back().segment : 0;
  seal(route_, icrc_, {at, bytes}, static_cast<std::uint16_t>(place));

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

void PacketBatch::send() {
  if (!runs_.empty()) host_.send_packets(route_, runs_);
  runs_.clear();
  used_ = 0;
  run_closed_ = true;
}

}  // namespace weir::rnic
