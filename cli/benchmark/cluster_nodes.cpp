#include "cli/benchmark/cluster_nodes.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/client/cluster_slots.hpp"
#include "cluster/key_slot.hpp"

namespace weir::benchmark {
namespace {

constexpr std::size_t most_tags = 32;  // per node: the number of its slots that get requests

// For each slot marked in `wanted`, a word that hashes to it.
std::vector<std::string> words_in_slots(const std::vector<bool>& wanted) {
  std::vector<std::string> words(wanted.size());
  auto missing = static_cast<std::size_t>(std::ranges::count(wanted, true));
  // The slots of words are practically random, so with so many words none stays empty.
  for (std::size_t n = 0; missing > 0 && n < 26 * 26 * 26 * 26; ++n) {
    std::string word;
    for (std::size_t rest = n, i = 0; i < 4; ++i, rest /= 26) word += static_cast<char>('a' + rest % 26);
    const auto slot = cluster::key_slot(word);
    if (!wanted[slot] || !words[slot].empty()) continue;
    words[slot] = std::move(word);
    --missing;
  }
  return words;
}

std::vector<std::uint16_t> evenly_chosen(const std::vector<std::uint16_t>& slots) {
  const auto count = std::min(slots.size(), most_tags);
  std::vector<std::uint16_t> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(slots[i * slots.size() / count]);
  return chosen;
}

}  // namespace

std::vector<ClusterNode> nodes_of(std::span<const cluster::SlotRange> ranges, const client::Endpoint& asked) {
  std::map<cluster::NodeAddress, std::vector<std::uint16_t>> slots_of;
  for (const auto& range : ranges)
    for (unsigned slot = range.first; slot <= range.last; ++slot)
      slots_of[range.primary].push_back(static_cast<std::uint16_t>(slot));
  std::vector<bool> wanted(cluster::slot_count);
  for (auto& [address, slots] : slots_of) {
    slots = evenly_chosen(slots);
    for (const auto slot : slots) wanted[slot] = true;
  }
  const auto words = words_in_slots(wanted);
  std::vector<ClusterNode> nodes;
  for (const auto& [address, slots] : slots_of) {
    auto& node = nodes.emplace_back(asked, std::vector<std::string>{});
    node.endpoint.host = address.host;
    node.endpoint.port = address.port;
    if (asked.transport == client::Transport::unix_socket) node.endpoint.transport = client::Transport::tcp;
    for (const auto slot : slots) node.tags.push_back("{" + words[slot] + "}");
  }
  return nodes;
}

client::Result<std::vector<ClusterNode>> find_cluster_nodes(const client::Endpoint& asked,
                                                            const client::Login& login,
                                                            client::Milliseconds limit) {
  auto session = client::Session::open(asked, limit);
  if (!session) return std::unexpected(std::move(session.error()));
  if (auto greeted = (*session)->log_in(login); !greeted) return std::unexpected(std::move(greeted.error()));
  const std::string question[] = {"CLUSTER", "SLOTS"};
  auto reply = (*session)->ask(question, limit);
  if (!reply) return std::unexpected(std::move(reply.error()));
  auto ranges = client::read_cluster_slots(*reply, asked.host);
  if (!ranges) return std::unexpected(std::move(ranges.error()));
  if (ranges->empty())
    return client::fail(client::ErrorKind::refused,
                        "No node of the cluster has slots yet: see CLUSTER INFO on " + address_of(asked));
  return nodes_of(*ranges, asked);
}

}  // namespace weir::benchmark
