#include "rpc/codec/schema_check.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace weir::rpc {
namespace {

enum class Kind : std::uint8_t { scalar, optional, list, map, tuple, variant, record };

struct Type {
  Kind kind = Kind::scalar;
  std::string_view name;                 // "i64" for a scalar, its own name for a record
  std::string_view unit;                 // for a scalar
  std::vector<const Type*> parts;        // in order for a record
  std::vector<std::string_view> fields;  // a record's field names, or an enum's
  std::vector<std::string_view> values;  // of an enum's names
};

struct Parameter {
  const Type* type = nullptr;
  bool optional = false;
};

struct Shape {
  std::vector<Parameter> parameters;
  const Type* reads = nullptr;  // as a stream
  const Type* writes = nullptr;
  const Type* result = nullptr;
};

// The schema text as a tree. It owns its nodes, because records may contain themselves.
class Parsed {
 public:
  explicit Parsed(std::string_view text) : rest_(text) {
    if (text.size() > max_schema_bytes) broken_ = true;
    expect("(");
    while (!broken_ && !take(")")) {
      if (!shape_.parameters.empty() || shape_.reads != nullptr) expect(", ");
      if (take("stream ")) {
        shape_.reads = type();
      } else {
        const bool optional = take("optional ");
        shape_.parameters.push_back({type(), optional});
      }
    }
    expect(" -> ");
    const bool streams = take("stream ");
    const Type* first = type();
    (streams ? shape_.writes : shape_.result) = first;
    if (streams && take(", ")) shape_.result = type();
    broken_ |= !rest_.empty();
  }

  bool broken() const { return broken_; }
  const Shape& shape() const { return shape_; }

 private:
  static constexpr int deepest = 64;

  Type* node(Kind kind) {
    nodes_.push_back(std::make_unique<Type>());
    nodes_.back()->kind = kind;
    return nodes_.back().get();
  }
  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) { broken_ |= !take(token); }
  std::string_view word() {
    const std::string_view found = rest_.substr(0, rest_.find_first_of("{}[](),:|<>? "));
    rest_.remove_prefix(found.size());
    broken_ |= found.empty();
    return found;
  }

  const Type* type() {
    if (++depth_ > deepest) broken_ = true;
    const Type* made = broken_ ? node(Kind::scalar) : parts();
    --depth_;
    return made;
  }
  const Type* parts() {
    if (take("?")) return one(Kind::optional, "");
    if (take("[")) return one(Kind::list, "]");
    if (take("(")) return many(Kind::tuple, ", ", ")");
    if (take("<")) return many(Kind::variant, " | ", ">");
    if (take("{")) {
      Type* made = node(Kind::map);
      made->parts.push_back(type());
      expect(": ");
      made->parts.push_back(type());
      expect("}");
      return made;
    }
    return named();
  }
  const Type* one(Kind kind, std::string_view close) {
    Type* made = node(kind);
    made->parts.push_back(type());
    expect(close);
    return made;
  }
  const Type* many(Kind kind, std::string_view between, std::string_view close) {
    Type* made = node(kind);
    while (!broken_ && !take(close)) {
      if (!made->parts.empty()) expect(between);
      made->parts.push_back(type());
    }
    return made;
  }
  const Type* named() {
    const std::string_view name = word();
    if (const auto known = records_.find(name); known != records_.end()) return known->second;
    Type* made = node(Kind::scalar);
    made->name = name;
    if (take("[")) {
      made->unit = rest_.substr(0, rest_.find(']'));
      rest_.remove_prefix(made->unit.size());
      expect("]");
    } else if (take("<")) {
      while (!broken_ && !take(">")) {
        if (!made->fields.empty()) expect(", ");
        made->fields.push_back(word());
        expect(" = ");
        made->values.push_back(word());
      }
    } else if (take("{")) {
      made->kind = Kind::record;
      records_.emplace(name, made);
      while (!broken_ && !take("}")) {
        if (!made->parts.empty()) expect(", ");
        made->fields.push_back(word());
        expect(": ");
        made->parts.push_back(type());
      }
    }
    return made;
  }

  std::string_view rest_;
  std::vector<std::unique_ptr<Type>> nodes_;
  std::map<std::string_view, const Type*> records_;
  Shape shape_;
  int depth_ = 0;
  bool broken_ = false;
};

// The type as words for a sentence; a record goes by its name.
std::string describe(const Type& type) {
  const auto list = [&](std::string_view open, std::string_view between, std::string_view close) {
    std::string text(open);
    for (const Type* part : type.parts)
      text.append(text.size() > open.size() ? between : "").append(describe(*part));
    return text.append(close);
  };
  switch (type.kind) {
    case Kind::optional:
      return std::string("?").append(describe(*type.parts[0]));
    case Kind::list:
      return list("[", "", "]");
    case Kind::map:
      return list("{", ": ", "}");
    case Kind::tuple:
      return list("(", ", ", ")");
    case Kind::variant:
      return list("<", " | ", ">");
    default: {
      std::string text(type.name);
      if (!type.unit.empty()) text.append("[").append(type.unit).append("]");
      return text;
    }
  }
}

struct Number {
  char sign = 0;  // 'i', 'u' or 'f'; 0: not a number
  int bits = 0;
};
Number number_of(std::string_view name) {
  Number number;
  if (name.size() < 2 || (name[0] != 'i' && name[0] != 'u' && name[0] != 'f')) return number;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number.bits);
  if (error == std::errc() && end == name.data() + name.size()) number.sign = name[0];
  return number;
}

// Whether every value of `written` is also a value of `reads`.
bool holds(Number reads, Number written) {
  if (reads.sign == 0 || written.sign == 0) return false;
  if (reads.sign == written.sign) return reads.bits >= written.bits;
  if (reads.sign == 'i') return written.sign == 'u' && reads.bits > written.bits;
  return reads.sign == 'f' && written.bits < (reads.bits == 32 ? 24 : 53);
}

// Compares what is written with what is read, side by side.
class Check {
 public:
  // The names of the two sides: "the caller", "the server".
  Check(std::string_view writer, std::string_view reader) : writer_(writer), reader_(reader) {}

  void see(const std::string& where, const Type* written, const Type* read) {
    if (why_) return;
    if (written == nullptr || read == nullptr) return;
    if (is(*written, "any") || is(*read, "any")) return;
    if (written->kind == Kind::record && read->kind == Kind::record)
      return see_records(where, *written, *read);
    if (read->kind == Kind::optional && written->kind != Kind::optional) {
      if (is(*written, "nil")) return;
      return see(where, written, read->parts[0]);
    }
    if (written->kind != read->kind) return differ(where, *written, *read);
    switch (read->kind) {
      case Kind::scalar:
        if (written->unit != read->unit ||
            !(written->name == read->name || holds(number_of(read->name), number_of(written->name))))
          return differ(where, *written, *read);
        return see_enumerators(where, *written, *read);
      case Kind::variant:
        if (read->parts.size() < written->parts.size()) return differ(where, *written, *read);
        break;
      default:
        if (read->parts.size() != written->parts.size()) return differ(where, *written, *read);
    }
    for (std::size_t i = 0; i < written->parts.size(); ++i) see(where, written->parts[i], read->parts[i]);
  }

  const std::optional<std::string>& why() const { return why_; }

 private:
  static bool is(const Type& type, std::string_view name) {
    return type.kind == Kind::scalar && type.name == name;
  }

  void see_records(const std::string& where, const Type& written, const Type& read) {
    if (!seen_.insert({&written, &read}).second) return;  // it contains itself
    const std::size_t common = std::min(written.fields.size(), read.fields.size());
    for (std::size_t i = 0; i < common; ++i) {
      const std::string field = where + ", field " + std::to_string(i + 1) + " of " + std::string(read.name);
      if (written.fields[i] != read.fields[i])
        return say(field + ": " + std::string(written.fields[i]) + " at " + std::string(writer_) + ", " +
                   std::string(read.fields[i]) + " at " + std::string(reader_));
      see(where + ", " + std::string(read.name) + "." + std::string(read.fields[i]), written.parts[i],
          read.parts[i]);
    }
  }

  // An enum may grow by names with values that are new. Both lists are short and are searched by looking.
  void see_enumerators(const std::string& where, const Type& written, const Type& read) {
    for (std::size_t i = 0; i < written.fields.size(); ++i) {
      for (std::size_t j = 0; j < read.fields.size(); ++j) {
        const bool same_name = written.fields[i] == read.fields[j],
                   same_value = written.values[i] == read.values[j];
        if (same_name == same_value) continue;
        const auto here = [](const Type& type, std::size_t at) {
          return std::string(type.fields[at]).append(" = ").append(type.values[at]);
        };
        return say(where + ": " + here(written, i) + " at " + std::string(writer_) + ", " + here(read, j) +
                   " at " + std::string(reader_));
      }
    }
  }

  void differ(const std::string& where, const Type& written, const Type& read) {
    say(where + ": " + describe(written) + " at " + std::string(writer_) + ", " + describe(read) + " at " +
        std::string(reader_));
  }
  void say(std::string what) {
    if (!why_) why_ = std::move(what);
  }

  std::string_view writer_, reader_;
  std::set<std::pair<const Type*, const Type*>> seen_;
  std::optional<std::string> why_;
};

std::string count_of(std::size_t arguments) {
  return std::to_string(arguments) + (arguments == 1 ? " argument" : " arguments");
}

// The number of arguments is checked when they come; here we check whether any number suits both.
std::optional<std::string> wrong_number(const Shape& caller, const Shape& server) {
  const auto least = [](const Shape& one) {
    return static_cast<std::size_t>(std::ranges::count(one.parameters, false, &Parameter::optional));
  };
  if (least(caller) > server.parameters.size())
    return "the caller sends " + count_of(least(caller)) + ", the server takes " +
           std::to_string(server.parameters.size()) + (server.parameters.empty() ? "" : " at most");
  if (caller.parameters.size() < least(server))
    return "the caller sends " + count_of(caller.parameters.size()) + ", the server wants " +
           std::to_string(least(server));
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not_callable(std::string_view callers, std::string_view served) {
  if (callers == served) return std::nullopt;
  const Parsed caller(callers), server(served);
  if (caller.broken()) return "what the caller says of its types cannot be read";
  if (server.broken()) return "what the server says of its types cannot be read";
  const Shape& from = caller.shape();
  const Shape& to = server.shape();
  if ((from.reads == nullptr) != (to.reads == nullptr))
    return std::string("the ") + (from.reads != nullptr ? "caller" : "server") +
           " has a stream among the arguments, the other end has none";
  if ((from.writes == nullptr) != (to.writes == nullptr))
    return std::string("the ") + (from.writes != nullptr ? "caller" : "server") +
           " has a stream as the result, the other end has none";
  if (auto why = wrong_number(from, to)) return why;
  Check sent("the caller", "the server");
  for (std::size_t i = 0; i < std::min(from.parameters.size(), to.parameters.size()); ++i)
    sent.see("argument " + std::to_string(i + 1), from.parameters[i].type, to.parameters[i].type);
  sent.see("what it reads", from.reads, to.reads);
  if (sent.why()) return sent.why();
  Check back("the server", "the caller");
  back.see("what it writes", to.writes, from.writes);
  // A caller that expects no result ignores whatever comes.
  const bool nothing =
      from.result == nullptr || (from.result->kind == Kind::scalar && from.result->name == "nil");
  if (!nothing && to.result == nullptr) return "the caller waits for a result, the server gives none";
  if (!nothing) back.see("result", to.result, from.result);
  return back.why();
}

}  // namespace weir::rpc
