#include "link/udp/arrival_filter.hpp"

#include <algorithm>

#include "link/udp/filter_code.hpp"
#include "link/udp/socket_address.hpp"
#include "wire/mad.hpp"

namespace weir::link {
namespace {

constexpr std::uint32_t taken = 0xffffffff, refused = 0;
// A socket's filter sees the packet from its UDP header on, and its IP header at offsets of its own.
constexpr std::uint32_t udp_bytes = 8, bth_bytes = 12, deth_bytes = 8, icrc_bytes = 4;
constexpr std::uint32_t destination_at = udp_bytes + 4;
constexpr std::uint32_t least_packet = udp_bytes + bth_bytes + icrc_bytes;
constexpr std::uint32_t management_packet = least_packet + deth_bytes + wire::mad_bytes;
constexpr std::uint32_t group_queue_pair = 0xffffff;
constexpr std::uint32_t ip_header = static_cast<std::uint32_t>(SKF_NET_OFF);
constexpr std::uint32_t v4_source = ip_header + 12, v6_source = ip_header + 8;
constexpr std::uint32_t loopback_network = 127;

std::uint32_t word_of(const IpAddress& ip, std::size_t at) {
  return std::uint32_t{ip[at]} << 24 | std::uint32_t{ip[at + 1]} << 16 | std::uint32_t{ip[at + 2]} << 8 |
         ip[at + 3];
}

// IPv6 addresses are compared folded to 32 bits. Nothing depends on an exact answer.
std::uint32_t folded(const IpAddress& ip) {
  return word_of(ip, 0) ^ word_of(ip, 4) ^ word_of(ip, 8) ^ word_of(ip, 12);
}
FilterCode load_folded_source() {
  FilterCode code = {load_word(v6_source)};
  for (std::uint32_t at = 4; at < 16; at += 4)
    append(code, {instruction(BPF_MISC | BPF_TAX, 0), load_word(v6_source + at),
                  instruction(BPF_ALU | BPF_XOR | BPF_X, 0)});
  return code;
}

// `otherwise`: what to do with others; nothing behind it runs.
FilterCode one_of(std::vector<std::uint32_t> keys, const FilterCode& otherwise) {
  std::ranges::sort(keys);
  const auto repeated = std::ranges::unique(keys);
  keys.erase(repeated.begin(), repeated.end());
  std::vector<FoundResult> found;
  for (const std::uint32_t key : keys) found.push_back({key, taken});
  if (otherwise.size() == 1) return find_result(found, otherwise.front().k);
  FilterCode code;
  for (const auto& [key, result] : found) append(code, {jump(BPF_JEQ, key, 0, 1), give(result)});
  append(code, otherwise);
  return code;
}

FilterCode from_peers(std::span<const IpAddress> peers, const FilterCode& others_v4,
                      const FilterCode& others_v6) {
  if (peers.size() > max_filtered_peers) return {give(taken)};
  std::vector<std::uint32_t> v4, v6;
  for (const IpAddress& peer : peers) {
    if (is_v4(peer))
      v4.push_back(word_of(peer, mapped.size()));
    else
      v6.push_back(folded(peer));
  }
  const FilterCode among_v4 = one_of(std::move(v4), others_v4);
  FilterCode code = {load_byte(ip_header), shift_right(4), jump(BPF_JEQ, 4, 1, 0),
                     jump_over(1 + among_v4.size()), load_word(v4_source)};
  append(code, among_v4);
  append(code, load_folded_source());
  append(code, one_of(std::move(v6), others_v6));
  return code;
}

// With a network in the accumulator, as cut_bucket_of() has it.
FilterCode unless_cut(const CutSources& cut) {
  const auto half = [](std::uint64_t buckets) {
    return FilterCode{instruction(BPF_MISC | BPF_TAX, 0),
                      instruction(BPF_LD | BPF_IMM, static_cast<std::uint32_t>(buckets)),
                      instruction(BPF_ALU | BPF_RSH | BPF_X, 0), mask(1)};
  };
  FilterCode code = {instruction(BPF_ALU | BPF_MUL | BPF_K, cut.salt), shift_right(32 - cut_bucket_bits)};
  FilterCode upper = {instruction(BPF_ALU | BPF_SUB | BPF_K, 32)};
  append(upper, half(cut.buckets >> 32));
  FilterCode lower = half(cut.buckets);
  lower.push_back(jump_over(upper.size()));
  append(code, {jump(BPF_JGE, 32, static_cast<unsigned>(lower.size()), 0)});
  append(code, lower);
  append(code, upper);
  append(code, {jump(BPF_JEQ, 0, 0, 1), give(taken), load_random(), mask((1u << cut.halvings) - 1),
                jump(BPF_JEQ, 0, 0, 1), give(taken), give(refused)});
  return code;
}

// Messages to the connection manager: peers' all.
FilterCode management(const ArrivalRules& rules) {
  if (rules.cut.buckets == 0) return {give(taken)};
  FilterCode v4 = {shift_right(8)},
             v6 = {load_word(v6_source), instruction(BPF_MISC | BPF_TAX, 0), load_word(v6_source + 4),
                   instruction(BPF_ALU | BPF_XOR | BPF_X, 0)};
  append(v4, unless_cut(rules.cut));
  append(v6, unless_cut(rules.cut));
  return from_peers(rules.peers, v4, v6);
}

FilterCode to_others(std::span<const Slot> others, unsigned loopback) {
  FilterCode code;
  for (const Slot slot : others) append(code, {jump(BPF_JEQ, slot, 0, 1), give(taken)});
  if (loopback != 0) append(code, {load_interface(), jump(BPF_JEQ, loopback, 0, 1), give(taken)});
  append(code, {load_random(), mask(sampled - 1), jump(BPF_JEQ, 0, 0, 1), give(taken), give(refused)});
  return code;
}

}  // namespace

std::vector<sock_filter> arrival_filter(const ArrivalRules& rules) {
  FilterCode code = {// from this host
                     load_byte(ip_header), shift_right(4), jump(BPF_JEQ, 4, 0, 4), load_word(v4_source),
                     shift_right(24), jump(BPF_JEQ, loopback_network, 0, 1), give(taken),
                     // too short
                     load_length(), jump(BPF_JGE, least_packet, 1, 0), give(refused),
                     // to a group, to nobody, to the connection manager
                     load_word(destination_at), mask(0xffffff), jump(BPF_JEQ, group_queue_pair, 0, 1),
                     give(taken), jump(BPF_JEQ, 0, 0, 1), give(refused)};
  FilterCode for_manager = {load_length(), jump(BPF_JGE, management_packet, 1, 0), give(refused)};
  append(for_manager, management(rules));
  append(code, {jump(BPF_JEQ, 1, 1, 0), jump_over(for_manager.size())});
  append(code, for_manager);
  code.push_back(shift_right(rules.slot_shift));
  const FilterCode own =
      rules.datagrams ? FilterCode{give(taken)} : from_peers(rules.peers, {give(refused)}, {give(refused)});
  append(code, {jump(BPF_JEQ, rules.own, 1, 0), jump_over(own.size())});
  append(code, own);
  append(code,
         to_others(rules.others.first(std::min(rules.others.size(), max_filtered_peers)), rules.loopback));
  return code;
}

}  // namespace weir::link
