#include "worker/step_watch.h"

#include "absl/strings/str_cat.h"

namespace mu {

StepWatch::Place StepWatch::place() const {
  MutexLock lock(&mutex_);
  Place place;
  place.moves = moves_;
  place.since_ns = since_ns_;
  if (doing_ != nullptr)
    place.doing = absl::StrCat("step ", step_, " of function '", function_, "' is ", doing_);
  return place;
}

}  // namespace mu
