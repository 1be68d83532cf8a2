// What a run and the process that evaluates its checkpoints from beside it (`coordinator eval
// --follow`, mu::Follow) agree on. While RUN/followed is there, somebody follows the run, though
// perhaps not at this moment: a checkpoint of RUN/checkpoints is moved there instead of being
// deleted. The follower evaluates what is there and deletes it.
#pragma once

#include <cstddef>
#include <string>

namespace mu {

// While so many wait, the run deletes further ones: a follower that is gone, or too slow, must not
// fill the disk.
inline constexpr size_t kMostFollowed = 100;

// In RUN/followed, beside the checkpoints: the file that the process which follows the run locks.
inline constexpr char kFollowerLock[] = "lock";

// RUN/followed
std::string FollowedFolder(const std::string& run);

// The checkpoint in RUN/checkpoints/NAME is about to be deleted. If it is complete and somebody
// follows the run who does not hold it already, moves it to RUN/followed/NAME and returns true.
// False: it is to be deleted, with a warning in the log if a follower misses it.
bool MoveToFollower(const std::string& folder);

}  // namespace mu
