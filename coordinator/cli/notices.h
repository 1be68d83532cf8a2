// What the command line tells its user on standard error. Thread safe.
#pragma once

#include <string>

namespace mu {

// Lines of text; where the log goes to standard error as JSON, lines of that log instead, so that
// whoever collects them can read all of them.
class Notices {
 public:
  explicit Notices(bool json) : json_(json) {}

  bool json() const { return json_; }
  void Note(const std::string& text) const;   // "note: ..."
  void Error(const std::string& text) const;  // "error: ..."
  // With its line ends. Other control characters, which may come from data, are escaped in all.
  void Problems(const std::string& text) const;

 private:
  const bool json_;
};

}  // namespace mu
