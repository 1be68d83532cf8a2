// Muster is compiled for x86-64-v3 (CMakeLists.txt). On an older processor, or in a virtual machine
// that hides the newer instructions, a program would die of an illegal instruction at some point;
// it ends before main instead, and says why. This file alone is compiled for any x86-64, and
// common/base/CMakeLists.txt has every program link it.
#include <unistd.h>

#include <cstring>

namespace {

void Say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // nobody is left to be told
}

// The parts of x86-64-v3 that compilers can ask for; Clang 14 knows fewer. Null if all are there.
const char* Missing() {
  if (!__builtin_cpu_supports("avx2")) return "AVX2";
  if (!__builtin_cpu_supports("fma")) return "FMA";
  if (!__builtin_cpu_supports("bmi")) return "BMI1";
  if (!__builtin_cpu_supports("bmi2")) return "BMI2";
#ifndef __clang__
  if (!__builtin_cpu_supports("lzcnt")) return "LZCNT";
  if (!__builtin_cpu_supports("movbe")) return "MOVBE";
  if (!__builtin_cpu_supports("f16c")) return "F16C";
#endif
  return nullptr;
}

}  // namespace

extern "C" {

// Before all other initialisers, those of generated protobuf code too, which have priority 101:
// they may be compiled to anything. (Up to 100 is for the implementation, which needs nothing
// here.)
__attribute__((constructor(100))) void muster_require_processor();

void muster_require_processor() {
  __builtin_cpu_init();
  const char* const missing = Missing();
  if (missing == nullptr) return;
  Say("muster: this processor has no ");
  Say(missing);
  Say(": Muster needs x86-64-v3 (Intel from Haswell, AMD from Excavator on). In a virtual machine, "
      "choose a processor model that passes it on, such as \"host\".\n");
  _exit(4);
}

}  // extern "C"
