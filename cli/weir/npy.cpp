#include "cli/weir/npy.hpp"

#include <algorithm>

namespace weir::command {
namespace {

std::string type_of(const tensor::DType& dtype) {
  struct Row {
    std::uint8_t code;
    char letter;
    std::uint8_t least, most;  // bytes
  };
  static constexpr Row rows[] = {
      {0, 'i', 1, 8}, {1, 'u', 1, 8}, {2, 'f', 2, 8}, {5, 'c', 8, 16}, {6, 'b', 1, 1}};
  const std::size_t bytes = dtype.bytes();
  const auto* row = std::ranges::find(rows, dtype.code, &Row::code);
  const bool known = row != std::end(rows) && dtype.lanes == 1 && bytes >= row->least && bytes <= row->most;
  return (bytes == 1 || !known ? "|" : "<") + std::string(1, known ? row->letter : 'V') +
         std::to_string(bytes);
}

}  // namespace

std::string npy_header(const tensor::DType& dtype, std::span<const std::uint64_t> shape) {
  std::string words = "{'descr': '" + type_of(dtype) + "', 'fortran_order': False, 'shape': (";
  for (const std::uint64_t extent : shape) words += std::to_string(extent) + ", ";
  words += "), }";
  constexpr std::size_t before = 10, unit = 64;  // magic, version, length; the array begins at a multiple
  const std::size_t whole = (before + words.size() + 1 + unit - 1) / unit * unit;
  words.resize(whole - before - 1, ' ');
  words += '\n';
  std::string header = "\x93NUMPY";
  header += {'\1', '\0', static_cast<char>(words.size() & 0xff), static_cast<char>(words.size() >> 8)};
  return header + words;
}

}  // namespace weir::command
