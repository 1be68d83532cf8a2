// What a Configure did to the definitions and placements that a server holds.
#pragma once

namespace mu {

enum class DefinitionsChange {
  kNone,
  kAdded,     // beside what was there
  kReplaced,  // what was there is over, with its values
};

}  // namespace mu
