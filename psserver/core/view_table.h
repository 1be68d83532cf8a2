// Which views of checkpoints a server has, who loads them and which were dropped: one call loads a
// view, others that ask for it wait; what was dropped stays dropped, however late a copy of the
// request to load it comes; a newer coordinator begins without views. Views are named by numbers
// that their coordinator chooses.
//
// Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace mu {

class ViewTable {
 public:
  // A load that has begun. Of each view one at a time.
  struct Load {
    uint64_t view = 0;
    uint64_t number = 0;  // of the loads of this server, from 1
  };
  enum class Ask {
    kLoad,     // load, then EndLoad
    kWait,     // another call loads it: ask again after the next EndLoad, Drop or TakeEpoch
    kIsHere,   // with all partitions that the server holds
    kOther,    // the view is of another checkpoint
    kDropped,  // it was dropped
  };

  // Drops all views and forgets what was dropped, if the coordinator is newer than those before.
  void TakeEpoch(uint64_t epoch);
  // The server has got further partitions: views that were loaded before may lack them.
  void PartitionsChanged() { ++partitions_; }

  // `content`: the checkpoint. kLoad: `load` has begun.
  Ask AskLoad(uint64_t view, const std::string& content, Load* load);
  // How many bytes the load will hold. False: it was dropped meanwhile.
  bool SetBytes(const Load& load, uint64_t bytes);
  // `ok`: its values replace those that the view had, if any. Returns whether they are to be kept:
  // false if it was not ok or was dropped meanwhile.
  bool EndLoad(const Load& load, bool ok);
  // A load of it may still be under way; it comes to nothing.
  void Drop(uint64_t view);
  // Forgets all views and ends their loads, so that something else has their memory. None counts as
  // dropped: each may be loaded again.
  void GiveUpAll();
  bool is_loading(const Load& load) const;
  // Whether GiveUpAll has ended the load.
  bool given_up(const Load& load) const;

  // Whether it has been loaded, so that it may be read.
  bool has(uint64_t view) const;
  uint64_t BytesOf(uint64_t view) const;
  // Of all views, and of those that are being loaded.
  uint64_t bytes() const;
  uint64_t bytes_without(const Load& load) const;
  uint64_t loading_bytes() const;  // of the latter
  uint64_t loaded() const;         // views

 private:
  struct View {
    std::string content;
    bool loaded = false;
    uint64_t loaded_partitions = 0;  // partitions_ when what is loaded was begun
    uint64_t bytes = 0;
    uint64_t load = 0;  // number of the load under way; 0: none
    uint64_t load_partitions = 0;
    uint64_t load_bytes = 0;
  };
  View* Loading(const Load& load);
  bool dropped(uint64_t view) const;

  uint64_t epoch_ = 0;
  uint64_t partitions_ = 0;
  uint64_t loads_ = 0;
  uint64_t given_up_ = 0;  // the last load that GiveUpAll has ended
  std::map<uint64_t, View> views_;
  std::deque<uint64_t> dropped_;  // the latest
};

}  // namespace mu
