#include "coordinator/frontend/model_options.h"

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Options {
  int64_t dim = 16;
  float l2 = 0.5f;
  bool bias = true;
  std::string label;
  std::vector<int64_t> hidden = {64, 16};
  std::vector<float> scales;
  std::vector<std::string> numbers;
  std::map<std::string, int64_t> ids;

  ModelOptions Reader() {
    ModelOptions options;
    options.Int("dim", &dim, "length of the vectors", {.least = 1, .most = 64});
    options.Number("l2", &l2, "weight of the squares", {.least = 0});
    options.Flag("bias", &bias, "whether there is one");
    options.Text("label", &label, "the label's column", {.required = true});
    options.Ints("hidden", &hidden, "widths", {.least = 1});
    options.Numbers("scales", &scales, "of the numbers");
    options.Texts("numbers", &numbers, "columns");
    options.IntMap("ids", &ids, "columns, and the rows of their tables", {.least = 1});
    return options;
  }
};

std::string Wrong(const std::string& json) {
  Options options;
  const absl::Status status = options.Reader().Read("line", json);
  EXPECT_THAT(status, testing::HasCode(kInvalid)) << json;
  return std::string(status.message());
}

TEST(ModelOptions, FillsVariablesAndKeepsDefaults) {
  Options options;
  MU_ASSERT_OK(options.Reader().Read("line", R"({"label": "y", "dim": 8, "hidden": [4],
      "scales": [0.5, 2], "numbers": ["a", "b"], "ids": {"user": 10}, "bias": false})"));
  EXPECT_EQ(options.label, "y");
  EXPECT_EQ(options.dim, 8);
  EXPECT_EQ(options.l2, 0.5f);
  EXPECT_FALSE(options.bias);
  EXPECT_THAT(options.hidden, ElementsAre(4));
  EXPECT_THAT(options.scales, ElementsAre(0.5f, 2.0f));
  EXPECT_THAT(options.numbers, ElementsAre("a", "b"));
  EXPECT_EQ(options.ids.at("user"), 10);
}

TEST(ModelOptions, NamesEachKeyThatIsWrong) {
  EXPECT_EQ(Wrong("{}"), "model.line.label: is missing: the label's column");
  EXPECT_EQ(Wrong(R"({"label": "y", "dims": 8})"),
            "model.line.dims: is no option of this model; did you mean `dim`?");
  EXPECT_THAT(Wrong(R"({"label": "y", "zzzzzz": 8})"),
              HasSubstr("there are dim, l2, bias, label, hidden, scales, numbers, ids"));
  EXPECT_EQ(Wrong(R"({"label": "y", "dim": 0, "l2": -1})"),
            "model.line.dim: must be at least 1, not 0\nmodel.line.l2: must be at least 0, not -1");
  EXPECT_EQ(Wrong(R"({"label": "y", "dim": 65})"), "model.line.dim: must be at most 64, not 65");
  EXPECT_EQ(Wrong(R"({"label": "y", "dim": 1.5})"),
            "model.line.dim: must be a whole number, not 1.5");
  EXPECT_EQ(Wrong(R"({"label": "y", "dim": "8"})"),
            "model.line.dim: must be a whole number, not \"8\"");
  EXPECT_EQ(Wrong(R"({"label": "y", "dim": 18446744073709551615})"),
            "model.line.dim: must be below 2^63, not 18446744073709551615");
  EXPECT_THAT(Wrong(R"({"label": "y", "l2": 1e39})"), HasSubstr("a float's range"));
  EXPECT_EQ(Wrong(R"({"label": 3})"), "model.line.label: must be a text, not 3");
  EXPECT_EQ(Wrong(R"({"label": ""})"), "model.line.label: must not be empty");
  EXPECT_EQ(Wrong(R"({"label": "y", "bias": 1})"), "model.line.bias: must be true or false, not 1");
  EXPECT_EQ(Wrong(R"({"label": "y", "hidden": 4})"),
            "model.line.hidden: must be a list of whole numbers, not 4");
  EXPECT_EQ(Wrong(R"({"label": "y", "hidden": [4, 0]})"),
            "model.line.hidden: must be a list of whole numbers, and its item 1 (from 0) must be "
            "at least 1, not 0");
  EXPECT_EQ(Wrong(R"({"label": "y", "ids": {"user": "x"}})"),
            "model.line.ids: must be a map of names to whole numbers, and user must be a whole "
            "number, not \"x\"");
  EXPECT_EQ(Wrong("[]"), "model.line: must be a map of keys");
}

TEST(ModelOptions, NothingChangesInAListThatIsWrong) {
  Options options;
  EXPECT_FALSE(options.Reader().Read("line", R"({"label": "y", "hidden": [1, -1]})").ok());
  EXPECT_THAT(options.hidden, ElementsAre(64, 16));
}

TEST(ModelOptions, DescribesKeysWithTypesAndDefaults) {
  Options options;
  const ModelDoc doc = options.Reader().Doc("line", "A line");
  EXPECT_EQ(KeyTable(doc),
            "| key | type | default | meaning |\n|---|---|---|---|\n"
            "| `dim` | whole number | 16 | length of the vectors |\n"
            "| `l2` | number | 0.5 | weight of the squares |\n"
            "| `bias` | true or false | true | whether there is one |\n"
            "| `label` | text | required | the label's column |\n"
            "| `hidden` | list of whole numbers | [64, 16] | widths |\n"
            "| `scales` | list of numbers | [] | of the numbers |\n"
            "| `numbers` | list of texts | [] | columns |\n"
            "| `ids` | map of whole numbers | {} | columns, and the rows of their tables |\n");
}

}  // namespace
}  // namespace mu
