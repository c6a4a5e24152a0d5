#include "kv/aof/log_steps.hpp"

#include "kv/command/command.hpp"

namespace weir::kv::aof {

namespace {

// PFCOUNT stores its result in the key.
bool belongs_in_a_log(const Command& command) {
  if (command.run == nullptr) return false;
  return command.has(flag::write) || command.name == "select" || command.name == "pfcount";
}

}  // namespace

const Command* logged_command(Arguments words) {
  const Command* command = find_command(words);
  const bool fits = command != nullptr && belongs_in_a_log(*command) && command->takes(words.size());
  return fits ? command : nullptr;
}

std::string unknown_in_log(Arguments words) {
  return "Unknown command '" + std::string(words[0].text.substr(0, 64)) + "' reading the append only file";
}

LogSteps::Next LogSteps::wrong(std::string_view what) {
  error_ = std::string(what) + " at byte " + std::to_string(reader_.whole_bytes()) + " of the file";
  return Next::wrong;
}

LogSteps::Next LogSteps::next() {
  if (was_transaction_) transaction_.clear();
  was_transaction_ = false;
  const LogReader::Next read = reader_.next();
  if (!in_transaction_) whole_ = reader_.whole_bytes();
  switch (read) {
    case LogReader::Next::request:
      return take(reader_.arguments());
    case LogReader::Next::end:
      return in_transaction_ ? Next::truncated : Next::end;
    case LogReader::Next::truncated:
      return Next::truncated;
    case LogReader::Next::malformed:
      break;
  }
  return wrong("Bad file format: no request");
}

LogSteps::Next LogSteps::take(Arguments words) {
  const std::string_view name = words[0].text;
  const bool alone = words.size() == 1;
  if (alone && is_word(name, "MULTI")) {
    if (in_transaction_) return wrong("MULTI in a transaction");
    in_transaction_ = true;
    return Next::part;
  }
  if (alone && is_word(name, "EXEC")) {
    if (!in_transaction_) return wrong("EXEC without MULTI");
    in_transaction_ = false;
    was_transaction_ = true;
    return Next::step;
  }
  if (!in_transaction_) return Next::step;
  Request& request = transaction_.emplace_back();
  for (const Argument& word : words) request.emplace_back(word.text);
  return Next::part;
}

}  // namespace weir::kv::aof
