// MU_CHECK: for our own bugs, never for input. Prints the place and aborts.
#pragma once

#include <cstdio>
#include <cstdlib>

#define MU_CHECK(condition)                                                              \
  do {                                                                                   \
    if (__builtin_expect(!(condition), 0)) {                                             \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
