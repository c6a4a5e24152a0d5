#include "link/udp/steering_program.hpp"

#include <algorithm>

#include "wire/mad.hpp"

namespace weir::link {
namespace {

using Code = std::vector<sock_filter>;

constexpr std::uint32_t nowhere = 0xffffffff;  // beyond every place: the kernel chooses
constexpr std::uint32_t least_packet = 16;     // a BTH and an ICRC

// Where things are, from the BTH on (IBA 9.2, 9.6.2, 13.4.2, 12.6): a management datagram is behind BTH and
// DETH, and its message behind the header of 24 bytes.
constexpr std::uint32_t destination_at = 4, mad_at = 20, attribute_at = mad_at + 16, local_at = mad_at + 24,
                        remote_at = local_at + 4, service_at = local_at + 12,
                        management_bytes = service_at + 4;

sock_filter say(unsigned code, std::uint32_t k) { return {static_cast<std::uint16_t>(code), 0, 0, k}; }
sock_filter jump(unsigned test, std::uint32_t k, unsigned if_so, unsigned else_over) {
  return {static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), static_cast<std::uint8_t>(if_so),
          static_cast<std::uint8_t>(else_over), k};
}
sock_filter word(std::uint32_t at) { return say(BPF_LD | BPF_W | BPF_ABS, at); }
sock_filter half(std::uint32_t at) { return say(BPF_LD | BPF_H | BPF_ABS, at); }
sock_filter length() { return say(BPF_LD | BPF_W | BPF_LEN, 0); }
sock_filter shifted(unsigned bits) { return say(BPF_ALU | BPF_RSH | BPF_K, bits); }
sock_filter answer(std::uint32_t place) { return say(BPF_RET | BPF_K, place); }
// A test reaches over 255 instructions at most, this over any number.
sock_filter over(std::size_t count) { return say(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(count)); }

void append(Code& code, const Code& more) { code.insert(code.end(), more.begin(), more.end()); }

// With a slot in the accumulator: its place. A binary search.
Code find(std::span<const PortPlace> by_slot) {
  if (by_slot.empty()) return {answer(nowhere)};
  if (by_slot.size() == 1)
    return {jump(BPF_JEQ, by_slot[0].slot, 0, 1), answer(by_slot[0].place), answer(nowhere)};
  const auto lower = by_slot.first(by_slot.size() / 2), upper = by_slot.subspan(by_slot.size() / 2);
  const Code below = find(lower);
  Code code = {jump(BPF_JGT, lower.back().slot, 0, 1), over(below.size())};
  append(code, below);
  append(code, find(upper));
  return code;
}

// A request: to who listens for its service, else to any of some.
Code listener(std::span<const ServicePlace> services, const Code& others) {
  Code code = {word(service_at)};
  for (const ServicePlace& it : services.first(std::min(services.size(), max_steered_services)))
    append(code, {jump(BPF_JEQ, it.service, 0, 1), answer(it.place)});
  append(code, others);
  return code;
}

Code any_of(std::span<const PortPlace> some) {
  if (some.empty()) return {answer(nowhere)};
  constexpr auto random = static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM);
  Code code = {word(random), say(BPF_ALU | BPF_MOD | BPF_K, static_cast<std::uint32_t>(some.size()))};
  for (std::uint32_t i = 0; i < some.size(); ++i)
    append(code, {jump(BPF_JEQ, i, 0, 1), answer(some[i].place)});
  code.push_back(answer(nowhere));
  return code;
}

}  // namespace

std::vector<sock_filter> steering_program(std::span<const PortPlace> places,
                                          std::span<const ServicePlace> services, SlotShifts shifts) {
  std::vector<PortPlace> known(places.begin(), places.end());
  std::ranges::sort(known, {}, &PortPlace::place);
  known.resize(std::min(known.size(), max_steered));
  const Code requests = listener(services, any_of(std::span(known).first(std::min(known.size(), relays))));
  std::ranges::sort(known, {}, &PortPlace::slot);
  const Code slots = find(known);

  Code management = {
      length(),
      jump(BPF_JGE, management_bytes, 1, 0),
      answer(nowhere),
      half(attribute_at),
      jump(BPF_JEQ, wire::CmReq::attribute, 2, 0),
      jump(BPF_JEQ, wire::CmSidrReq::attribute, 1, 0),
      over(1),
      over(6),  // to the requests
      jump(BPF_JEQ, wire::CmSidrRep::attribute, 0, 2),
      word(local_at),
      over(1),
      word(remote_at),
      shifted(shifts.communication),
      over(requests.size() + 1),  // to the slots, past the shift of a queue pair number
  };
  append(management, requests);

  Code code = {length(),       jump(BPF_JEQ, sizeof(PlaceProbe), 0, 5),
               word(0),        jump(BPF_JEQ, probe_magic, 0, 2),
               half(8),        say(BPF_RET | BPF_A, 0),
               answer(nowhere)};
  append(code, {jump(BPF_JGE, least_packet, 1, 0), answer(nowhere)});
  append(code, {word(destination_at), say(BPF_ALU | BPF_AND | BPF_K, 0xffffff)});
  append(code, {jump(BPF_JGT, 1, 0, 1), over(management.size())});
  append(code, management);
  append(code, {shifted(shifts.queue_pair)});
  append(code, slots);
  return code;
}

}  // namespace weir::link
