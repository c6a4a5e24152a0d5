#include "screen/wrap.hpp"

#include <algorithm>
#include <vector>

namespace weir::screen {
namespace {

// A line this wide, had it taken the next line's first word, was broken because it was full.
constexpr std::size_t full = 105;

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::size_t indentation(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

std::string_view first_word(std::string_view line) {
  line.remove_prefix(indentation(line));
  return line.substr(0, line.find(' '));
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_command(std::string_view line) { return line.substr(indentation(line)).starts_with("$ "); }

// Where the text of a line begins: behind "  --option VALUE   " or "Usage: ", else at its first word.
std::size_t text_column(std::string_view line) {
  const std::size_t start = indentation(line);
  if (is_command(line)) return start + 4;
  if (constexpr std::string_view usage = "Usage: "; line.starts_with(usage)) return usage.size();
  if (start == 0) return 0;
  const std::size_t gap = line.find("  ", start);
  if (gap == std::string_view::npos) return start;
  return gap + indentation(line.substr(gap));
}

// One line as it was meant, before it was broken for its width.
struct Paragraph {
  std::string text;
  std::size_t column;  // of what continues it
};

bool continues(const Paragraph& before, std::string_view last, std::string_view line) {
  if (line.empty() || is_command(line) || line.starts_with("Usage: ")) return false;
  if (is_command(before.text)) return last.ends_with('\\');
  return indentation(line) == before.column && text_column(line) == before.column &&
         width(last) + 1 + width(first_word(line)) > full;
}

std::vector<Paragraph> paragraphs_of(const std::vector<std::string_view>& lines) {
  std::vector<Paragraph> paragraphs;
  std::string_view last;
  for (const std::string_view line : lines) {
    if (!paragraphs.empty() && continues(paragraphs.back(), last, line)) {
      auto& text = paragraphs.back().text;
      if (last.ends_with('\\')) text.erase(text.find_last_not_of(" \\") + 1);
      text.append(" ").append(line.substr(indentation(line)));
    } else {
      paragraphs.push_back({std::string(line), text_column(line)});
    }
    last = line;
  }
  return paragraphs;
}

void append_wrapped(std::string& out, const Paragraph& paragraph, std::size_t columns) {
  std::string_view rest = paragraph.text;
  const bool command = is_command(rest);
  const std::size_t room = command ? columns - 2 : columns;  // for " \"
  std::size_t column = paragraph.column;
  // Beside a long option there is too little room.
  if (column > columns / 2) column = std::min(indentation(rest) + 4, columns / 4);
  std::string line(rest.substr(0, indentation(rest)));
  rest.remove_prefix(line.size());
  bool has_word = false;
  while (!rest.empty()) {
    const std::size_t spaces = indentation(rest);
    const std::string_view word = first_word(rest);
    if (has_word &&
        width(line) + spaces + width(word) > (rest.size() == spaces + word.size() ? columns : room)) {
      out.append(line).append(command ? " \\\n" : "\n");
      line.assign(column, ' ');
    } else {
      line.append(spaces, ' ');
    }
    line.append(word);
    has_word = true;
    rest.remove_prefix(spaces + word.size());
    if (indentation(rest) == rest.size()) break;  // spaces at the end
  }
  out.append(line).append("\n");
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t columns) {
  const auto lines = lines_of(text);
  if (columns == 0 || std::ranges::all_of(lines, [&](auto line) { return width(line) <= columns; }))
    return std::string(text);
  std::string out;
  for (const Paragraph& paragraph : paragraphs_of(lines)) append_wrapped(out, paragraph, columns);
  if (!text.ends_with('\n')) out.pop_back();
  return out;
}

}  // namespace weir::screen
