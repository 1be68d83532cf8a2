// Which parts share a message.
#include "common/rpc/resumable_end.h"

#include <string>
#include <vector>

#include "proto/worker.pb.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;

class ResumableEndTest : public ::testing::Test {
 protected:
  ResumableEndTest() { end_.Connect(1, {}, /*greets=*/false); }
  // A reply of about so many bytes, named by a letter; `said`: the bytes that Add is told of.
  void Add(char name, size_t bytes, size_t said) {
    end_.Add(said, [=](std::string* message) {
      muster::FeedReply part;
      part.add_replies(std::string(bytes, name));
      part.AppendToString(message);
    });
  }
  void Add(char name, size_t bytes) { Add(name, bytes, bytes); }
  // The names of the parts of each message.
  std::vector<std::string> Messages() {
    std::vector<std::string> messages;
    Buffer bytes;
    while (end_.Next(1, &bytes)) {
      muster::FeedReply reply;
      EXPECT_TRUE(reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
      EXPECT_EQ(reply.number(), messages.size() + 1);
      std::string& names = messages.emplace_back();
      size_t of_parts = 0;
      for (const std::string& part : reply.replies()) {
        of_parts += part.size();
        names += part[0];
      }
      EXPECT_LE(bytes.size(), of_parts + kMessageOverhead);
      if (reply.replies_size() > 1) EXPECT_LE(bytes.size(), kMessageBytes + kMessageOverhead);
    }
    return messages;
  }

  ResumableEnd end_;
};

TEST_F(ResumableEndTest, SmallPartsShareAMessage) {
  for (const char name : {'a', 'b', 'c'}) Add(name, 100);
  EXPECT_THAT(Messages(), ElementsAre("abc"));
}

TEST_F(ResumableEndTest, AMessageIsClosedWhenItIsFull) {
  for (const char name : {'a', 'b', 'c', 'd', 'e'}) Add(name, kMessageBytes * 2 / 5);
  EXPECT_THAT(Messages(), ElementsAre("ab", "cd", "e"));
}

TEST_F(ResumableEndTest, ALargePartSharesItsMessageWithNone) {
  Add('a', 100);
  Add('b', 2 * kMessageBytes);
  Add('c', 100);
  Add('d', 100);
  EXPECT_THAT(Messages(), ElementsAre("a", "b", "cd"));
}

TEST_F(ResumableEndTest, PartsThatAreLargerThanWasSaidShareNoMoreThanTheyMay) {
  Add('a', 100, 1);
  Add('b', 2 * kMessageBytes, 1);
  Add('c', 3 * kMessageBytes, 1);
  Add('d', kMessageBytes / 2, 1);
  Add('e', kMessageBytes / 3, 1);
  Add('f', kMessageBytes / 3, 1);
  EXPECT_THAT(Messages(), ElementsAre("a", "b", "c", "de", "f"));
  end_.Connect(2, {}, /*greets=*/false);
  Buffer again;
  EXPECT_TRUE(end_.Next(2, &again)) << "all of them are kept for the next connection";
  EXPECT_GT(end_.unconfirmed_bytes(), 5 * kMessageBytes);
}

}  // namespace
}  // namespace mu
