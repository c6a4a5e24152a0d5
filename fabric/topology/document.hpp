// A TOML document whose values know their places. It is read field by field, with the type
// that the reader expects.
//
// A Table remembers which keys were read. finish() complains of all others and suggests the nearest known
// key. So the fields that a reader reads define the format; there is no second list. A field with a wrong
// value causes a complaint and reads as absent.
//
// A Table refers to its Document and to the Complaints, which must outlive it. Single-threaded.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/topology/complaint.hpp"
#include "fabric/topology/quantity.hpp"

namespace weir::fabric {

struct TomlValue;  // the parsed tree; document_tree.hpp

struct Range {
  double least;
  double most;
};

template <class T>
struct At {  // a value and its place
  T value;
  Place place;
};

class Table {
 public:
  Table(const TomlValue& value, Place place, std::string name, Complaints& complaints);
  Table(Table&&) = default;

  bool has(std::string_view key);
  Place place() const { return place_; }
  Place place(std::string_view key) const;  // of the key's value; without one, of the table
  const std::string& name() const { return name_; }

  std::optional<std::string> string(std::string_view key);
  std::optional<std::string> word(std::string_view key, std::initializer_list<std::string_view> allowed);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, Range range);
  std::optional<double> number(std::string_view key, Range range);
  // In the base unit of `unit`. A plain number is in that unit, if read_quantity accepts
  // numbers without a suffix.
  std::optional<double> quantity(std::string_view key, Unit unit, Range range);
  std::vector<At<std::string>> strings(std::string_view key);  // "a" or ["a", "b"]
  std::vector<At<std::int64_t>> integers(std::string_view key, Range range);

  std::optional<Table> table(std::string_view key);  // [key]
  std::vector<Table> tables(std::string_view key);   // [[key]]
  // For tables whose keys are data: every key not yet read, with its place, in file order.
  std::vector<At<std::string>> other_keys() const;

  void missing(std::string_view key, std::string_view fix);  // complains that a required key is missing
  void complain(std::string_view key, std::string what, std::string fix);
  void finish();

 private:
  const TomlValue* find(std::string_view key);
  void expected(std::string_view key, const TomlValue& value, std::string_view what);
  std::optional<double> within(std::string_view key, double value, Range range, std::string_view unit);
  Place at(const TomlValue& value) const;

  const TomlValue* value_;
  Place place_;
  std::string name_;
  Complaints* complaints_;
  std::vector<std::string> asked_;
};

class Document {
 public:
  // nullopt: the text is not TOML, and a complaint was added.
  static std::optional<Document> parse(std::string_view text, std::string file, Complaints& complaints);
  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();
  Table root(Complaints& complaints) const;

 private:
  Document();
  std::shared_ptr<const std::string> file_;
  std::unique_ptr<TomlValue> tree_;
};

// The text of a whole file, for Document::parse(). nullopt: errno says why.
std::optional<std::string> read_text(const std::filesystem::path& path);

}  // namespace weir::fabric
