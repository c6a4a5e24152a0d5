#include "kv/command/key_specs.hpp"

#include <algorithm>

#include "kv/command/option_walk.hpp"

namespace weir::kv {

namespace {

using KeyPlaces::counted, KeyPlaces::keyword, KeyPlaces::unknown;

// Commands with the same specifications; their names are separated by blanks.
struct SpecRow {
  std::string_view commands;
  KeySpec specs[3];
  const OptionGrammar* options = nullptr;  // if options name keys
};
constexpr SpecRow spec_rows[] = {
    {"msetnx", {{"OW insert", 1, -1, 2}}},
    {"setnx", {{"OW insert", 1}}},
    {"mset", {{"OW update", 1, -1, 2}}},
    {"msetex", {{"OW update", 1, 0, 2, counted}}},
    {"psetex restore restore-asking setex", {{"OW update", 1}}},
    {"del unlink", {{"RM delete", 1, -1, 1}}},
    {"mget sdiff sinter sunion", {{"RO access", 1, -1, 1}}},
    {"sintercard zdiff zinter zintercard zunion", {{"RO access", 1, 0, 1, counted}}},
    {"bitcount bitfield_ro bitpos dump expiretime geodist geohash geopos georadius_ro "
     "georadiusbymember_ro geosearch get getbit getrange hexpiretime hget hgetall hkeys hmget "
     "hpexpiretime hpttl hrandfield httl "
     "hscan hvals lindex lpos lrange pexpiretime pttl smembers smismember srandmember sscan substr "
     "ttl zcount zlexcount zmscore zrandmember zrange zrangebylex zrangebyscore zrank zrevrange "
     "zrevrangebylex zrevrangebyscore zrevrank zscan zscore xpending xrange xrevrange",
     {{"RO access", 1}}},
    {"eval evalsha fcall", {{"RW access update", 2, 0, 1, counted}}},
    {"eval_ro evalsha_ro fcall_ro", {{"RO access", 2, 0, 1, counted}}},
    {"lcs", {{"RO access", 1, 1, 1}}},
    {"xinfo|consumers xinfo|groups xinfo|stream", {{"RO access", 2}}},
    {"pfcount", {{"RW access", 1, -1, 1}}},
    {"pfdebug", {{"RW access", 2}}},
    {"pfmerge", {{"RW access insert", 1}, {"RO access", 2, -1, 1}}},
    {"georadius",
     {{"RO access", 1},
      {"OW update", 6, 0, 1, keyword, "STORE"},
      {"OW update", 6, 0, 1, keyword, "STOREDIST"}},
     &georadius_options},
    {"georadiusbymember",
     {{"RO access", 1},
      {"OW update", 5, 0, 1, keyword, "STORE"},
      {"OW update", 5, 0, 1, keyword, "STOREDIST"}},
     &georadiusbymember_options},
    {"xread", {{"RO access", 1, -1, 1, keyword, "STREAMS"}}, &stream_reading_options},
    {"xreadgroup", {{"RO access", 4, -1, 1, keyword, "STREAMS"}}, &stream_reading_options},
    {"exists touch watch", {{"RO", 1, -1, 1}}},
    {"hexists hlen hstrlen llen scard sismember strlen type xlen zcard", {{"RO", 1}}},
    {"memory|usage object|encoding object|freq object|idletime object|refcount", {{"RO", 2}}},
    {"blpop brpop bzpopmax bzpopmin", {{"RW access delete", 1, -2, 1}}},
    {"lmpop zmpop", {{"RW access delete", 1, 0, 1, counted}}},
    {"delifeq getdel hgetdel lpop rpop spop zpopmax zpopmin", {{"RW access delete", 1}}},
    {"blmpop bzmpop", {{"RW access delete", 2, 0, 1, counted}}},
    {"set", {{"RW access update variable_flags", 1}}},
    {"bitfield", {{"RW access update variable_flags", 1}}},
    {"decr decrby getset hincrby hincrbyfloat incr incrby incrbyfloat move setbit zincrby",
     {{"RW access update", 1}}},
    {"getex", {{"RW access update", 1}}},
    {"xadd xack xclaim xsetid", {{"RW update", 1}}},
    {"xautoclaim xdel xtrim", {{"RW delete", 1}}},
    {"xgroup|create xgroup|createconsumer", {{"RW insert", 2}}},
    {"xgroup|delconsumer xgroup|destroy", {{"RW delete", 2}}},
    {"xgroup|setid", {{"RW update", 2}}},
    {"hdel lrem ltrim srem zrem zremrangebylex zremrangebyrank zremrangebyscore", {{"RW delete", 1}}},
    {"append hsetnx linsert lpush lpushx pfadd rpush rpushx sadd", {{"RW insert", 1}}},
    {"expire expireat geoadd hexpire hexpireat hgetex hmset hpersist hpexpire hpexpireat hset hsetex lset "
     "persist pexpire "
     "pexpireat setrange zadd",
     {{"RW update", 1}}},
    {"ssubscribe sunsubscribe", {{"not_key", 1, -1, 1}}},
    {"spublish", {{"not_key", 1}}},
    {"sdiffstore sunionstore", {{"OW update", 1}, {"RO access", 2, -1, 1}}},
    {"zdiffstore zinterstore zunionstore", {{"OW update", 1}, {"RO access", 2, 0, 1, counted}}},
    {"geosearchstore zrangestore", {{"OW update", 1}, {"RO access", 2}}},
    {"bitop", {{"OW update", 2}, {"RO access", 3, -1, 1}}},
    {"copy", {{"RO access", 1}, {"OW update", 2}}},
    {"sort_ro", {{"RO access", 1}, {"RO access", 0, 0, 0, unknown}}},
    {"renamenx", {{"RW access delete", 1}, {"OW insert", 2}}},
    {"rename", {{"RW access delete", 1}, {"OW update", 2}}},
    {"blmove brpoplpush lmove rpoplpush smove", {{"RW access delete", 1}, {"RW insert", 2}}},
    {"sinterstore", {{"RW update", 1}, {"RO access", 2, -1, 1}}},
    {"migrate", {{"RW access delete", 3}, {"RW access delete incomplete", -2, -1, 1, keyword, "KEYS"}}},
    {"sort",
     {{"RO access", 1}, {"RO access", 0, 0, 0, unknown}, {"OW update", 0, 0, 0, unknown}},
     &sort_options},
};

struct TipRow {
  std::string_view tips;
  std::string_view commands;
};
constexpr TipRow tip_rows[] = {
    {"nondeterministic_output request_policy:all_nodes response_policy:special",
     "latency|doctor latency|graph latency|histogram latency|history latency|latest"},
    {"nondeterministic_output request_policy:all_shards response_policy:special",
     "info memory|doctor memory|malloc-stats memory|stats"},
    {"nondeterministic_output request_policy:special", "scan"},
    {"nondeterministic_output",
     "client|info client|list cluster|bumpepoch cluster|count-failure-reports cluster|getkeysinslot "
     "cluster|info cluster|links cluster|nodes cluster|replicas cluster|shards cluster|slaves cluster|slots "
     "dump hpttl hrandfield hscan httl lastsave migrate object|encoding object|freq object|idletime "
     "object|refcount "
     "pttl spop "
     "srandmember "
     "sscan time ttl xadd xautoclaim xclaim xinfo|consumers xpending xtrim zrandmember zscan"},
    {"nondeterministic_output_order",
     "command command|docs command|info command|list hgetall hkeys hvals module|list sdiff sinter "
     "smembers sunion"},
    {"request_policy:all_nodes nondeterministic_output", "commandlog|get slowlog|get"},
    {"request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
     "commandlog|len slowlog|len"},
    {"request_policy:all_nodes response_policy:all_succeeded",
     "config|set latency|reset function|delete function|flush function|load script|flush script|load "
     "commandlog|reset slowlog|reset"},
    {"request_policy:all_shards nondeterministic_output", "randomkey"},
    {"request_policy:all_shards nondeterministic_output_order", "keys"},
    {"request_policy:all_shards response_policy:agg_min", "wait"},
    {"request_policy:all_shards response_policy:agg_logical_and", "script|exists"},
    {"request_policy:all_shards response_policy:one_succeeded", "function|kill script|kill"},
    {"request_policy:all_shards response_policy:agg_sum", "dbsize"},
    {"request_policy:all_shards response_policy:all_succeeded",
     "flushall flushdb function|restore memory|purge ping"},
    {"request_policy:multi_shard response_policy:agg_min", "msetnx"},
    {"request_policy:multi_shard response_policy:agg_sum", "del exists touch unlink"},
    {"request_policy:multi_shard response_policy:all_succeeded", "mset msetex"},
    {"request_policy:multi_shard", "mget"},
};

bool has_word(std::string_view words, std::string_view wanted) {
  for (std::size_t at = words.find(wanted); at != words.npos; at = words.find(wanted, at + 1)) {
    const std::size_t end = at + wanted.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

template <class Row, std::size_t count>
const Row* row_of(const Row (&rows)[count], const Command& command) {
  const std::string name = command.full_name();
  const auto* row = std::ranges::find_if(rows, [&](const Row& r) { return has_word(r.commands, name); });
  return row == std::end(rows) ? nullptr : row;
}

bool names_keys(const KeySpec& spec) { return spec.use != "not_key"; }

// The keys that a command's options name, by the walk that the command itself makes.
void add_named_by_options(const OptionGrammar& grammar, Arguments words, std::vector<KeyInUse>& keys) {
  std::optional<KeyInUse> destination;  // a later one replaces it
  OptionWalk walk(grammar, words);
  while (walk.next()) {
    const OptionWord& option = walk.option();
    const Arguments behind = words.subspan(walk.value());
    if (option.keys == OptionKeys::value) destination = {behind[0].text, option.use};
    const std::size_t named = option.keys == OptionKeys::all    ? behind.size()
                              : option.keys == OptionKeys::half ? behind.size() / 2
                                                                : 0;
    for (const Argument& key : behind.first(named)) keys.push_back({key.text, option.use});
  }
  if (destination) keys.push_back(*destination);
}

// MIGRATE names one key, or "" and behind KEYS any number.
std::vector<KeyInUse> keys_of_migrate(Arguments words) {
  std::vector<KeyInUse> keys;
  const std::string_view key = words[3].text;
  if (key.empty()) add_named_by_options(migrate_options, words, keys);
  if (keys.empty()) keys.push_back({key, "RW access delete"});
  return keys;
}

// SET reads the old value only with GET or IFEQ; a BITFIELD that only reads changes nothing.
std::string_view use_with(const KeySpec& spec, const Command& command, Arguments words) {
  if (!has_word(spec.use, "variable_flags")) return spec.use;
  const auto options = words.subspan(std::min<std::size_t>(words.size(), command.name == "set" ? 3 : 2));
  const auto is_any_of = [](std::string_view text, std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [text](std::string_view name) { return is_word(text, name); });
  };
  if (command.name == "set") {
    const bool reads = std::ranges::any_of(
        options, [&](const Argument& option) { return is_any_of(option.text, {"GET", "IFEQ"}); });
    return reads ? "RW access update" : "OW update";
  }
  const bool changes = std::ranges::any_of(
      options, [&](const Argument& option) { return is_any_of(option.text, {"SET", "INCRBY"}); });
  return changes ? "RW access update" : "RO access";
}

}  // namespace

std::span<const KeySpec> key_specs(const Command& command) {
  const auto* row = row_of(spec_rows, command);
  if (row == nullptr) return {};
  const auto* end = std::ranges::find(row->specs, std::string_view(), &KeySpec::use);
  return {std::begin(row->specs), end};
}

std::string_view tips(const Command& command) {
  const auto* row = row_of(tip_rows, command);
  return row == nullptr ? std::string_view() : row->tips;
}

bool has_keys(const Command& command) { return std::ranges::any_of(key_specs(command), names_keys); }

std::optional<std::vector<KeyInUse>> keys_in(const Command& command, Arguments words) {
  if (command.name == "migrate") return keys_of_migrate(words);
  const auto* row = row_of(spec_rows, command);
  std::vector<KeyInUse> keys;
  const auto size = static_cast<int>(words.size());
  for (const KeySpec& spec : key_specs(command)) {
    if (!names_keys(spec)) continue;
    if (spec.places == counted) {
      const auto step = static_cast<std::size_t>(spec.step);
      const CountedKeys found = counted_keys_in(words, static_cast<std::size_t>(spec.begin), step);
      const bool too_few = found.keys.empty() && !command.has(flag::no_mandatory_keys);
      if (found.wrong != CountedKeys::Wrong::nothing || too_few) return std::nullopt;
      for (std::size_t i = 0; i < found.keys.size(); i += step)
        keys.push_back({found.keys[i].text, spec.use});
    } else if (spec.places == KeyPlaces::range) {
      const int last = spec.last < 0 ? size + spec.last : spec.begin + spec.last;
      const std::string_view use = use_with(spec, command, words);
      for (int i = spec.begin; i <= last && i < size; i += spec.step)
        keys.push_back({words[static_cast<std::size_t>(i)].text, use});
    }
  }
  if (row != nullptr && row->options != nullptr) add_named_by_options(*row->options, words, keys);
  if (keys.empty() && row != nullptr && row->options != nullptr) return std::nullopt;  // no STREAMS
  return keys;
}

}  // namespace weir::kv
