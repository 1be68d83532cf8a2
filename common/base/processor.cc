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

}  // namespace

extern "C" {

// Before all other initialisers, those of generated protobuf code too, which have priority 101:
// they may be compiled to anything. (Up to 100 is for the implementation, which needs nothing
// here.)
__attribute__((constructor(100))) void muster_require_processor();

void muster_require_processor() {
  __builtin_cpu_init();
  const char* const missing = !__builtin_cpu_supports("avx2")   ? "AVX2"
                              : !__builtin_cpu_supports("fma")  ? "FMA"
                              : !__builtin_cpu_supports("bmi2") ? "BMI2"
                                                                : nullptr;
  if (missing == nullptr) return;
  Say("muster: this processor has no ");
  Say(missing);
  Say(": Muster needs x86-64-v3 (Intel from Haswell, AMD from Excavator on). In a virtual machine, "
      "choose a processor model that passes it on, such as \"host\".\n");
  _exit(4);
}

}  // extern "C"
