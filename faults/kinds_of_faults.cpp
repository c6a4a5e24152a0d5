#include "faults/kinds_of_faults.hpp"

#include <algorithm>

#include "faults/call_names.hpp"
#include "faults/written_values.hpp"

namespace weir::faults {
namespace {

constexpr std::uint64_t max_copies = 16, max_distance = 1000;

Read read_delay(std::string_view word, Fault& fault) { return store(duration(word), fault.amount); }
Read read_copies(std::string_view word, Fault& fault) {
  if (auto read = store(number(word, max_copies), fault.amount); !read) return read;
  return fault.amount != 0 ? Read{} : std::unexpected("wants at least 1 further copy");
}
Read read_distance(std::string_view word, Fault& fault) {
  if (auto read = store(number(word, max_distance), fault.amount); !read) return read;
  return fault.amount != 0 ? Read{} : std::unexpected("wants at least 1 packet to pass");
}

Read read_error(std::string_view word, Fault& fault) {
  const auto found = named(word, error_names(), "an error like ENOMEM");
  if (!found) return std::unexpected(found.error());
  fault.amount = (*found)->number;
  return {};
}
Read read_status(std::string_view word, Fault& fault) {
  const auto found = named(word, status_names(), "a status like IBV_WC_RETRY_EXC_ERR");
  if (!found) return std::unexpected(found.error());
  fault.amount = (*found)->number;
  return {};
}

constexpr KindRule kind_table[] = {
    {{"drop", "the packet is lost", "drop qp=1 psn=5"}, Act::drop, Amount::none},
    {{"duplicate", "it comes twice, or so many times more", "duplicate 2 qp=1 nth=10"},
     Act::duplicate,
     Amount::optional,
     read_copies,
     1},
    {{"corrupt", "one of its bits is changed on the way, so that its ICRC is wrong", "corrupt rate=0.1%"},
     Act::corrupt,
     Amount::none},
    {{"alter",
      "one bit of its payload is changed and its ICRC made right, as by a faulty switch or NIC: the program "
      "sees wrong bytes",
      "alter qp=1 psn=5"},
     Act::alter,
     Amount::none},
    {{"delay", "it comes so much later", "delay 80us opcode=ack every=10"},
     Act::delay,
     Amount::required,
     read_delay},
    {{"reorder", "the next packet of its queue pair, or so many, overtake it", "reorder 3 qp=1 psn=7"},
     Act::reorder,
     Amount::optional,
     read_distance,
     1},
    {{"mark", "a switch marks it: congestion experienced", "mark direction=in rate=5%"},
     Act::mark,
     Amount::none},
    {{"down",
      "the port is down: all packets are lost, IBV_EVENT_PORT_ERR, and IBV_EVENT_PORT_ACTIVE at its end",
      "down from=1s until=1.5s"},
     Act::down,
     Amount::none,
     nullptr,
     0,
     "from"},
    {{"gid-gone",
      "an address of the port is gone, with its GID: what is sent from it or to it is lost, "
      "IBV_EVENT_GID_CHANGE, again at its end",
      "gid-gone gid=0 from=1s until=2s"},
     Act::gid_gone,
     Amount::none,
     nullptr,
     0,
     "from"},
    {{"pause", "a switch pauses the port, as in a pause storm: nothing leaves until the end, then all of it",
      "pause from=1s until=1.5s"},
     Act::pause,
     Amount::none,
     nullptr,
     0,
     "from"},
    {{"rnr",
      "the program's receives come late: its queue pairs answer RNR NAK for that time after each message, or "
      "as long as the conditions say",
      "rnr 2ms qp=1 nth=3"},
     Act::rnr,
     Amount::optional,
     read_delay},
    {{"refuse", "the call does nothing and returns this error", "refuse ENOMEM call=ibv_post_send nth=7"},
     Act::refuse,
     Amount::required,
     read_error,
     0,
     "call"},
    {{"complete", "what was done completes with this status, and its queue pair is in error",
      "complete IBV_WC_RETRY_EXC_ERR qp=1 nth=3"},
     Act::complete,
     Amount::required,
     read_status},
    {{"qp-error",
      "the queue pair is in the error state, IBV_EVENT_QP_FATAL; after so many of its completions, or at a "
      "time",
      "qp-error qp=1 nth=3"},
     Act::qp_error,
     Amount::none},
    {{"kill", "the program is killed (SIGKILL)", "kill from=500ms"},
     Act::kill,
     Amount::none,
     nullptr,
     0,
     "from"},
    {{"stop", "the program is stopped (SIGSTOP), as if it hung", "stop from=500ms"},
     Act::stop,
     Amount::none,
     nullptr,
     0,
     "from"},
};

}  // namespace

bool is_allowed(Act act, std::string_view condition) {
  if (condition == "program" || condition == "host") return true;
  constexpr std::string_view of_time[] = {"from", "until"};
  constexpr std::string_view of_receives[] = {"qp", "nth", "times", "from", "until"};
  constexpr std::string_view of_queue_pairs[] = {"qp", "nth", "from"};
  constexpr std::string_view of_calls[] = {"qp", "nth", "every", "rate", "times", "from", "until"};
  const auto among = [&](const auto& names) {
    return std::ranges::find(names, condition) != std::end(names);
  };
  if (act == Act::kill || act == Act::stop) return condition == "from";
  if (act == Act::down || act == Act::pause) return among(of_time);
  if (act == Act::gid_gone) return among(of_time) || condition == "gid";
  if (act == Act::rnr) return among(of_receives);
  if (act == Act::qp_error) return among(of_queue_pairs);
  if (is_about_calls(act)) return among(of_calls) || (act == Act::refuse && condition == "call");
  return condition != "call" && condition != "gid";
}

std::span<const KindRule> kind_rules() { return kind_table; }

std::span<const KindOfFault> kinds_of_faults() {
  static const auto all = shown_of<KindOfFault>(kind_table);
  return all;
}

}  // namespace weir::faults
