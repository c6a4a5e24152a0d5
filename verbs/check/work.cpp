#include "verbs/check/work.hpp"

#include <algorithm>
#include <numeric>
#include <shared_mutex>
#include <unordered_map>

namespace weir::check {

Pieces::Pieces(const ibv_sge* list, int count) : count_(static_cast<std::uint32_t>(count > 0 ? count : 0)) {
  if (count_ <= few_.size())
    std::copy_n(list, count_, few_.begin());
  else
    more_.assign(list, list + count_);
}

std::uint64_t Pieces::bytes() const {
  const auto pieces = all();
  return std::accumulate(pieces.begin(), pieces.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const ibv_sge& piece) { return sum + piece.length; });
}

bool PostedSend::brings_data_back() const { return opcode == IBV_WR_RDMA_READ || is_atomic(); }

namespace {

struct Records {
  std::shared_mutex mutex;
  std::unordered_map<const void*, std::shared_ptr<QueuePairRecord>> queue_pairs;
  std::unordered_map<std::uint32_t, std::shared_ptr<QueuePairRecord>> by_number;
  std::unordered_map<const void*, std::shared_ptr<CompletionQueueRecord>> completion_queues;
  std::unordered_map<const void*, std::shared_ptr<SharedReceiveRecord>> shared_receives;
};
Records& records() {
  static auto* const one = new Records;
  return *one;
}

template <class Map, class Key>
typename Map::mapped_type found_in(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found != map.end() ? found->second : nullptr;
}

template <class Map>
auto all_of(const Map& map) {
  std::vector<typename Map::mapped_type> all;
  for (const auto& [key, record] : map) all.push_back(record);
  return all;
}

}  // namespace

std::shared_ptr<QueuePairRecord> record_of(const ibv_qp* qp) {
  const std::shared_lock lock(records().mutex);
  return found_in(records().queue_pairs, qp);
}
std::shared_ptr<QueuePairRecord> queue_pair_numbered(std::uint32_t number) {
  const std::shared_lock lock(records().mutex);
  return found_in(records().by_number, number);
}
std::shared_ptr<CompletionQueueRecord> record_of(const ibv_cq* cq) {
  const std::shared_lock lock(records().mutex);
  return found_in(records().completion_queues, cq);
}
std::shared_ptr<SharedReceiveRecord> record_of(const ibv_srq* srq) {
  const std::shared_lock lock(records().mutex);
  return found_in(records().shared_receives, srq);
}
std::vector<std::shared_ptr<QueuePairRecord>> all_queue_pairs() {
  const std::shared_lock lock(records().mutex);
  return all_of(records().queue_pairs);
}
std::vector<std::shared_ptr<CompletionQueueRecord>> all_completion_queues() {
  const std::shared_lock lock(records().mutex);
  return all_of(records().completion_queues);
}

void keep(const ibv_qp* qp, std::shared_ptr<QueuePairRecord> record) {
  const std::unique_lock lock(records().mutex);
  records().by_number[record->number] = record;
  records().queue_pairs[qp] = std::move(record);
}
void keep(const ibv_cq* cq, std::shared_ptr<CompletionQueueRecord> record) {
  const std::unique_lock lock(records().mutex);
  records().completion_queues[cq] = std::move(record);
}
void keep(const ibv_srq* srq, std::shared_ptr<SharedReceiveRecord> record) {
  const std::unique_lock lock(records().mutex);
  records().shared_receives[srq] = std::move(record);
}

void drop(const ibv_qp* qp) {
  const std::unique_lock lock(records().mutex);
  const auto found = records().queue_pairs.find(qp);
  if (found == records().queue_pairs.end()) return;
  const auto numbered = records().by_number.find(found->second->number);
  if (numbered != records().by_number.end() && numbered->second == found->second)
    records().by_number.erase(numbered);
  records().queue_pairs.erase(found);
}
void drop(const ibv_cq* cq) {
  const std::unique_lock lock(records().mutex);
  records().completion_queues.erase(cq);
}
void drop(const ibv_srq* srq) {
  const std::unique_lock lock(records().mutex);
  records().shared_receives.erase(srq);
}

void drop_all_records() {
  const std::unique_lock lock(records().mutex);
  records().queue_pairs.clear();
  records().by_number.clear();
  records().completion_queues.clear();
  records().shared_receives.clear();
}

Totals& totals() {
  static Totals one;
  return one;
}

}  // namespace weir::check
