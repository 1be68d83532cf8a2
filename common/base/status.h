// Macros over absl::Status, and the typed detail that our services attach to errors.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/error.pb.h"

#define MU_RETURN_IF_ERROR(expression)                                               \
  do {                                                                               \
    if (absl::Status mu_status_ = (expression); !mu_status_.ok()) return mu_status_; \
  } while (false)

#define MU_STATUS_CONCAT_(a, b) a##b
#define MU_STATUS_CONCAT(a, b) MU_STATUS_CONCAT_(a, b)
#define MU_ASSIGN_OR_RETURN(declaration, expression) \
  MU_ASSIGN_OR_RETURN_(MU_STATUS_CONCAT(mu_status_or_, __COUNTER__), declaration, expression)
#define MU_ASSIGN_OR_RETURN_(variable, declaration, expression) \
  auto variable = (expression);                                 \
  if (!variable.ok()) return std::move(variable).status();      \
  declaration = std::move(variable).value()

namespace mu {

namespace pb = ::muster;

// Attaches `detail` (replacing an earlier one); an OK status is returned as it is.
absl::Status WithDetail(absl::Status status, const pb::ErrorDetail& detail);

// The detail that a service of ours attached, if any.
std::optional<pb::ErrorDetail> DetailOf(const absl::Status& status);

// The kind of an error: from its detail, or, where it has none, from its code: UNAVAILABLE,
// DEADLINE_EXCEEDED and CANCELLED are the machine's, everything else the user's.
pb::ErrorKind KindOf(const absl::Status& status);

// Same code and payload, message "`context`: message".
absl::Status Annotate(const absl::Status& status, absl::string_view context);

}  // namespace mu
