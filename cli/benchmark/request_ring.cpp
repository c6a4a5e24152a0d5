#include "cli/benchmark/request_ring.hpp"

#include <algorithm>
#include <random>

#include "cli/client/request.hpp"

namespace weir::benchmark {
namespace {

struct Words {
  std::span<const std::string> arguments;
  bool is_inline;
};

std::string request_text(const Words& words, const std::string* tag) {
  std::vector<std::string> arguments(words.arguments.begin(), words.arguments.end());
  for (auto& argument : arguments)
    for (auto at = argument.find(tag_mark); tag && at != std::string::npos;
         at = argument.find(tag_mark, at + tag->size()))
      argument.replace(at, tag_mark.size(), *tag);
  std::string request;
  if (!words.is_inline) {
    client::append_request(request, arguments);
    return request;
  }
  for (const auto& argument : arguments) request.append(request.empty() ? "" : " ").append(argument);
  return request += "\r\n";
}

// One round of a mix: each part as often as its share.
std::vector<Words> round_of(const Workload& workload, std::uint64_t seed) {
  if (workload.mix.empty()) return {{workload.arguments, workload.is_inline}};
  std::vector<Words> round;
  for (const auto& part : workload.mix)
    round.insert(round.end(), part.share, {part.arguments, part.is_inline});
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed));
  std::ranges::shuffle(round, random);
  return round;
}

}  // namespace

RequestRing::RequestRing(const Workload& workload, std::size_t least, std::uint64_t seed,
                         std::span<const std::string> tags) {
  const auto round = round_of(workload, seed);
  const auto rounds = (std::max(least, tags.size()) + round.size() - 1) / round.size();
  for (std::size_t i = 0; i < rounds * round.size(); ++i) {
    requests_.push_back({bytes_.size(), digits_.size()});
    bytes_ += request_text(round[i % round.size()], tags.empty() ? nullptr : &tags[i % tags.size()]);
    const auto begin = requests_.back().bytes;
    for (auto at = bytes_.find(random_mark, begin); at != std::string::npos;
         at = bytes_.find(random_mark, at)) {
      digits_.push_back(at);
      bytes_.replace(at, random_mark.size(), random_mark.size(), '0');
    }
  }
  requests_.push_back({bytes_.size(), digits_.size()});
}

void RequestRing::renumber(std::size_t first, std::size_t count, KeyNumbers& numbers) {
  const auto end = requests_[first + count].digits;
  for (auto digit = requests_[first].digits; digit < end; ++digit) {
    auto number = numbers.next();
    for (std::size_t i = random_mark.size(); i-- > 0; number /= 10)
      bytes_[digits_[digit] + i] = static_cast<char>('0' + number % 10);
  }
}

}  // namespace weir::benchmark
