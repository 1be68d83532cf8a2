// What compilers want to be told about a loop.
#pragma once

// Before a loop whose iterations touch only elements of their own index, even where output and
// input are one array.
#if defined(__clang__)
#define MU_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MU_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Before a short loop of constant length over an array of vectors. Unrolled early enough, the array
// becomes registers; GCC otherwise stores it to the stack in each round of the loop outside.
#if defined(__clang__)
#define MU_UNROLL _Pragma("unroll")
#else
#define MU_UNROLL _Pragma("GCC unroll 16")
#endif
