// The end of objects: refused because others need them, destroyed twice, or never destroyed.
#include <algorithm>
#include <map>

#include "verbs/check/checks.hpp"
#include "verbs/check/findings.hpp"
#include "verbs/check/names.hpp"

namespace weir::check {
namespace {

constexpr std::size_t max_listed = 8;

std::string label_of(const Object& object) {
  std::string label = name_of(object.kind);
  if (object.kind == Kind::qp || object.kind == Kind::region) label += " " + hex(object.number);
  return label;
}

void list(Report& report, const std::vector<Object>& some) {
  for (std::size_t i = 0; i < some.size() && i < max_listed; ++i)
    report.fact(i == 0 ? "also" : "", label_of(some[i]) + ", created in").place("", some[i].created);
  if (some.size() > max_listed) report.fact("", "and " + std::to_string(some.size() - max_listed) + " more");
}

std::string counts_of(const std::vector<Object>& some) {
  std::map<Kind, std::size_t> counts;
  for (const Object& object : some) ++counts[object.kind];
  std::string text;
  for (const auto& [kind, count] : counts)
    text += (text.empty() ? "" : ", ") + count_of(count, name_of(kind));
  return text;
}

bool names(const QueuePairRecord& qp, std::uint32_t lkey, const PostedSend*& send,
           const PostedReceive*& receive) {
  const auto of_region = [&](const auto& posted) {
    return std::ranges::any_of(posted.pieces.all(),
                               [&](const ibv_sge& piece) { return piece.lkey == lkey && piece.length != 0; });
  };
  for (const PostedSend& posted : qp.sends)
    if (!posted.is_inline() && of_region(posted)) return send = &posted, true;
  for (const PostedReceive& posted : qp.receives)
    if (of_region(posted)) return receive = &posted, true;
  return false;
}

}  // namespace

void refused_as_in_use(const void* handle, const Place& where) {
  const auto object = objects().find(handle);
  const auto users = objects().users_of(handle);
  if (!object || users.empty()) return;
  Report report(Rule::in_use,
                std::string("a ") + name_of(object->kind) + " was not destroyed: " + counts_of(users) +
                    " still " + (users.size() == 1 ? "needs" : "need") + " it",
                "called", where);
  list(report, users);
  report.place("created", object->created).print();
}

bool destroyed_twice(const void* handle, const char* call) {
  Place before;
  const auto object = objects().destroyed_before(handle, before);
  if (!object) return false;
  Report(Rule::destroyed_twice,
         std::string(call) + "() was called for a " + name_of(object->kind) + " that is destroyed already",
         "called", place_here())
      .place("destroyed", before)
      .place("created", object->created)
      .print();
  return true;
}

// Only where the NIC may still come: a queue pair in ERR or RESET does nothing more.
void about_to_deregister(const ibv_mr& mr) {
  for (const auto& qp : all_queue_pairs()) {
    const std::lock_guard lock(qp->mutex);
    const PostedSend* send = nullptr;
    const PostedReceive* receive = nullptr;
    if (!names(*qp, mr.lkey, send, receive)) continue;
    const ibv_qp_state state = state_of(qp->qp);
    if (state == IBV_QPS_ERR || state == IBV_QPS_RESET || (state == IBV_QPS_SQE && send != nullptr)) continue;
    Report report(Rule::region_in_use,
                  "a region is deregistered although a work request that names it is not complete", "called",
                  place_here());
    report.fact("region",
                range_text(reinterpret_cast<std::uint64_t>(mr.addr), mr.length) + ", lkey " + hex(mr.lkey));
    report.fact("queue pair", hex(qp->number) + ", in the state " + name_of(state));
    if (send != nullptr)
      report.fact("request", std::string(name_of(send->opcode)) + ", wr_id " + hex(send->wr_id))
          .place("posted", send->posted_at.place());
    else
      report.fact("receive", "wr_id " + hex(receive->wr_id)).place("posted", receive->posted_at.place());
    report.print();
    return;
  }
}

void report_leaks() {
  std::vector<Object> left = objects().all();
  std::erase_if(left, [](const Object& object) { return object.of_library; });
  if (left.empty()) return;
  std::ranges::sort(left, {}, [](const Object& object) { return object.kind; });
  Report report(Rule::leak_at_exit, counts_of(left) + " never destroyed", "created", left.front().created);
  list(report, {left.begin() + 1, left.end()});
  report.print();
}

}  // namespace weir::check
