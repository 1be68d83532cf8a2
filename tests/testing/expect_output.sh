#!/usr/bin/env bash
# Runs a command, and fails unless it ends with exit code 0 and its output matches a pattern (an extended regular
# expression, in which . matches a line's end as well). CTest's PASS_REGULAR_EXPRESSION looks at the output alone: a
# program that says what is expected, and then fails, would pass.
#
#   tests/testing/expect_output.sh PATTERN COMMAND [ARGUMENT...]
set -euo pipefail

pattern=$1
shift
output=$(mktemp)
trap 'rm -f "$output"' EXIT
"$@" 2>&1 | tee "$output" || { echo "expect_output: exit code ${PIPESTATUS[0]}" >&2; exit 1; }
text=$(<"$output")
LC_ALL=C
[[ $text =~ $pattern ]] || { echo "expect_output: the output does not match: $pattern" >&2; exit 1; }
