// The actions of the worker's core as text, one line each.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "worker/core/action.h"

namespace mu::testing {

inline std::string Text(const WorkerAction& action) {
  if (const auto* step = std::get_if<worker_action::RunStep>(&action))
    return absl::StrCat("run ", step->run.value(), " step ", step->step);
  if (const auto* send = std::get_if<worker_action::SendResults>(&action))
    return absl::StrCat("results of ", send->run.value());
  if (const auto* end = std::get_if<worker_action::EndRun>(&action)) {
    const auto detail = DetailOf(end->status);
    return absl::StrCat("end ", end->run.value(), " ",
                        detail.has_value() ? pb::ErrorKind_Name(detail->kind())
                                           : absl::StatusCodeToString(end->status.code()),
                        end->handed_back ? " handed back" : "");
  }
  if (const auto* cancelled = std::get_if<worker_action::Cancelled>(&action))
    return absl::StrCat("cancelled ", cancelled->call.value());
  if (std::holds_alternative<worker_action::InterruptCall>(action)) return "interrupt";
  if (std::holds_alternative<worker_action::UseRouting>(action)) return "use routing";
  return "forget";
}

// What there is, and forgets it.
inline std::vector<std::string> Take(WorkerActions* actions) {
  std::vector<std::string> lines;
  for (const WorkerAction& action : std::exchange(*actions, {})) lines.push_back(Text(action));
  return lines;
}

}  // namespace mu::testing
