// The servers that a client's routing names, and what they hold.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/client/ps_client.h"

namespace mu {

// FAILED_PRECONDITION before SetRouting.
inline absl::StatusOr<std::shared_ptr<const PsClient::View>> KnownView(const PsClient& client) {
  auto view = client.view();
  if (view == nullptr)
    return absl::FailedPreconditionError("the routing to the parameter servers is not known yet");
  return view;
}

// NOT_FOUND if there is none of this name.
inline absl::StatusOr<const VariableRoute*> KnownVariable(const Routing& routing,
                                                          const std::string& name) {
  const VariableRoute* route = routing.variable(name);
  if (route != nullptr) return route;
  return absl::NotFoundError(absl::StrCat("there is no variable '", name, "'"));
}

inline absl::StatusOr<const TableRoute*> KnownTable(const Routing& routing,
                                                    const std::string& name) {
  const TableRoute* route = routing.table(name);
  if (route != nullptr) return route;
  return absl::NotFoundError(absl::StrCat("there is no table '", name, "'"));
}

}  // namespace mu
