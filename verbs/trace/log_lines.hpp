// The text of the log's lines. The tracer puts time, process and queue
// pair in front of each.
#pragma once

#include <span>
#include <string>

#include "rnic/queue_pair/send_queue.hpp"
#include "rnic/tracer.hpp"

namespace weir::verbs {

const char* operation_name(rnic::SendOpcode);

std::string posted_line(rnic::SendWqe&, rnic::QpType);
std::string receive_line(std::uint64_t wr_id, std::span<const rnic::Sge>);
std::string parked_line(const rnic::SendWqe&, rnic::Tracer::WaitsFor);
std::string completion_line(const rnic::WorkCompletion&);

}  // namespace weir::verbs
