// Lets a cut of a server's state happen between changes: any number of changes at once, or one cut.
// A cut that waits goes before changes that come later, so it waits only for those under way.
//
// Pure: it says who has to wait; the caller makes them wait.
#pragma once

namespace mu {

class CutGate {
 public:
  // A change begins: false if it has to wait until the gate is open again. It ends with Leave, when
  // the change and its record in the ledger are complete.
  bool Enter() {
    if (closed_) return false;
    ++changing_;
    return true;
  }
  void Leave() { --changing_; }

  // A cut is wanted: nothing enters any more. False if another cut has closed the gate: wait until
  // it is open.
  bool Close() {
    if (closed_) return false;
    return closed_ = true;
  }
  // The cut may be taken: the gate is closed and no change is under way.
  bool quiet() const { return closed_ && changing_ == 0; }
  void Open() { closed_ = false; }
  bool closed() const { return closed_; }

 private:
  bool closed_ = false;
  int changing_ = 0;
};

}  // namespace mu
