#include "link/udp/steering_program.hpp"

#include <algorithm>

#include "link/udp/filter_code.hpp"
#include "wire/mad.hpp"

namespace weir::link {
namespace {

constexpr std::uint32_t nowhere = 0xffffffff;  // beyond every place: the kernel chooses
constexpr std::uint32_t least_packet = 16;     // a BTH and an ICRC

// Where things are, from the BTH on (IBA 9.2, 9.6.2, 13.4.2, 12.6): a management datagram is behind BTH and
// DETH, and its message behind the header of 24 bytes.
constexpr std::uint32_t destination_at = 4, mad_at = 20, attribute_at = mad_at + 16, local_at = mad_at + 24,
                        remote_at = local_at + 4, service_at = local_at + 12,
                        management_bytes = service_at + 4;

FilterCode place_of_slot(std::span<const PortPlace> by_slot) {
  std::vector<FoundResult> places;
  for (const PortPlace& it : by_slot) places.push_back({it.slot, it.place});
  return find_result(places, nowhere);
}

// A request: to who listens for its service, else to any of some.
FilterCode listener(std::span<const ServicePlace> services, const FilterCode& others) {
  FilterCode code = {load_word(service_at)};
  for (const ServicePlace& it : services.first(std::min(services.size(), max_steered_services)))
    append(code, {jump(BPF_JEQ, it.service, 0, 1), give(it.place)});
  append(code, others);
  return code;
}

FilterCode any_of(std::span<const PortPlace> some) {
  if (some.empty()) return {give(nowhere)};
  FilterCode code = {load_random(),
                     instruction(BPF_ALU | BPF_MOD | BPF_K, static_cast<std::uint32_t>(some.size()))};
  for (std::uint32_t i = 0; i < some.size(); ++i) append(code, {jump(BPF_JEQ, i, 0, 1), give(some[i].place)});
  code.push_back(give(nowhere));
  return code;
}

}  // namespace

std::vector<sock_filter> steering_program(std::span<const PortPlace> places,
                                          std::span<const ServicePlace> services, SlotShifts shifts) {
  std::vector<PortPlace> known(places.begin(), places.end());
  std::ranges::sort(known, {}, &PortPlace::place);
  known.resize(std::min(known.size(), max_steered));
  const FilterCode requests =
      listener(services, any_of(std::span(known).first(std::min(known.size(), relays))));
  std::ranges::sort(known, {}, &PortPlace::slot);
  const FilterCode slots = place_of_slot(known);

  FilterCode management = {
      load_length(),
      jump(BPF_JGE, management_bytes, 1, 0),
      give(nowhere),
      load_half(attribute_at),
      jump(BPF_JEQ, wire::CmReq::attribute, 2, 0),
      jump(BPF_JEQ, wire::CmSidrReq::attribute, 1, 0),
      jump_over(1),
      jump_over(6),  // to the requests
      jump(BPF_JEQ, wire::CmSidrRep::attribute, 0, 2),
      load_word(local_at),
      jump_over(1),
      load_word(remote_at),
      shift_right(shifts.communication),
      jump_over(requests.size() + 1),  // to the slots, past the shift of a queue pair number
  };
  append(management, requests);

  FilterCode code = {
      load_length(), jump(BPF_JEQ, sizeof(PlaceProbe), 0, 5), load_word(0), jump(BPF_JEQ, probe_magic, 0, 2),
      load_half(8),  instruction(BPF_RET | BPF_A, 0),         give(nowhere)};
  append(code, {jump(BPF_JGE, least_packet, 1, 0), give(nowhere)});
  append(code, {load_word(destination_at), mask(0xffffff)});
  append(code, {jump(BPF_JGT, 1, 0, 1), jump_over(management.size())});
  append(code, management);
  append(code, {shift_right(shifts.queue_pair)});
  append(code, slots);
  return code;
}

}  // namespace weir::link
