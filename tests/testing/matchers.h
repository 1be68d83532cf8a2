// gtest matchers for absl::Status and StatusOr, and a macro for values that must be there.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mu::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg);
  return StatusOf(arg).ok();
}

MATCHER_P(HasCode, code, "") {
  *result_listener << StatusOf(arg);
  return StatusOf(arg).code() == code;
}

// The code, and a matcher of the message, e.g. StatusIs(absl::StatusCode::kNotFound, HasSubstr("no
// file")).
MATCHER_P2(StatusIs, code, message, "") {
  *result_listener << StatusOf(arg);
  return StatusOf(arg).code() == code &&
         ::testing::ExplainMatchResult(message, std::string(StatusOf(arg).message()),
                                       result_listener);
}

}  // namespace mu::testing

#define MU_ASSERT_OK(expression) ASSERT_THAT((expression), ::mu::testing::IsOk())
#define MU_EXPECT_OK(expression) EXPECT_THAT((expression), ::mu::testing::IsOk())

#define MU_TEST_CONCAT_(a, b) a##b
#define MU_TEST_CONCAT(a, b) MU_TEST_CONCAT_(a, b)
#define MU_ASSERT_OK_AND_ASSIGN(declaration, expression) \
  MU_ASSERT_OK_AND_ASSIGN_(MU_TEST_CONCAT(mu_value_, __COUNTER__), declaration, expression)
#define MU_ASSERT_OK_AND_ASSIGN_(variable, declaration, expression) \
  auto variable = (expression);                                     \
  ASSERT_THAT(variable, ::mu::testing::IsOk());                     \
  declaration = std::move(variable).value()
