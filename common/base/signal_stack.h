// A stack of their own for this thread's handlers of signals, as long as the object lives. A thread
// that has used up its stack can run no handler on it, and would end the process without a word.
// Threads do not inherit it: each makes its own. That which calls InitLogging (common/obs/log.h)
// has one; on threads without it, a stack that overflows is not shown by the handler of fatal
// signals.
#pragma once

namespace mu {

class SignalStack {
 public:
  // Changes nothing if the thread has such a stack already, or if there is no memory.
  SignalStack();
  // On the thread that made it.
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  char* memory_ =
      nullptr;  // a page that nobody may touch, then the stack; null: nothing was changed
};

}  // namespace mu
