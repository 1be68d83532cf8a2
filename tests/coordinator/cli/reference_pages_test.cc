// The pages in docs/reference are what the code says, and every model describes its keys.
#include "coordinator/cli/reference_pages.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/optimizer/optimizer_table.h"
#include "coordinator/frontend/feature_models.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::StatusIs;

// Tests run in the project's root.
void ExpectPage(const std::string& path, const std::string& text, const std::string& command) {
  const auto page = ReadFile(path);
  MU_ASSERT_OK(page.status());
  EXPECT_TRUE(*page == text) << path << " is not what the code says; write it anew: build/bin/"
                             << command << " > " << path;
}

TEST(ReferencePages, AreWhatTheCodeSays) {
  ExpectPage("docs/reference/models.md", ModelsPage(ModelRegistry::WithBuiltins()),
             "coordinator models --markdown");
  ExpectPage("docs/reference/metrics.md", MetricsPage(), "coordinator metrics --markdown");
}

TEST(ReferencePages, TheJobFilesPageHasEveryModel) {
  MU_ASSERT_OK_AND_ASSIGN(const std::string page, ReadFile("docs/job_file.md"));
  const auto* const kinds = pb::ModelProto::descriptor();
  for (int i = 0; i < kinds->field_count(); ++i) {
    const std::string& name = kinds->field(i)->name();
    if (name == "custom") continue;
    EXPECT_THAT(page, HasSubstr("\n| `" + name + "` | "));
  }
}

TEST(ReferencePages, TheJobFilesPageHasEveryOptimizer) {
  MU_ASSERT_OK_AND_ASSIGN(const std::string page, ReadFile("docs/job_file.md"));
  const std::string section = page.substr(page.find("\n## optimizer\n"));
  const std::string table = section.substr(0, section.find("\n## parameters\n"));
  for (const OptimizerKind& kind : AllOptimizers())
    EXPECT_THAT(table, ContainsRegex(absl::StrCat("\n\\| [^|]*`", kind.name, "`[^|]*\\| ")));
}

// The keys of a message that a doc must have, without those of messages in it.
std::set<std::string> FieldsOf(const google::protobuf::Descriptor* message) {
  std::set<std::string> fields;
  for (int i = 0; i < message->field_count(); ++i) fields.insert(message->field(i)->name());
  return fields;
}

std::set<std::string> TopKeysOf(const ModelDoc& doc) {
  std::set<std::string> keys;
  for (const ModelKeyDoc& key : doc.keys) keys.insert(key.key.substr(0, key.key.find('.')));
  return keys;
}

TEST(ReferencePages, EveryModelOfTheJobFileDescribesItsKeys) {
  const ModelRegistry models = ModelRegistry::WithBuiltins();
  const auto* const kinds = pb::ModelProto::descriptor();
  std::set<std::string> of_feature_models;
  for (int i = 0; i < kinds->field_count(); ++i) {
    const auto* const field = kinds->field(i);
    if (field->name() == "custom") continue;
    SCOPED_TRACE(field->name());
    const ModelDoc* const doc = models.Doc(field->name());
    ASSERT_NE(doc, nullptr) << "add it to coordinator/frontend/model_doc.cc";
    EXPECT_NE(doc->what, "");
    for (const ModelKeyDoc& key : doc->keys) {
      EXPECT_NE(key.meaning, "") << key.key;
      EXPECT_NE(key.type, "") << key.key;
    }
    const std::set<std::string> keys = TopKeysOf(*doc);
    if (field->message_type() == pb::FeatureModelProto::descriptor()) {
      of_feature_models.insert(keys.begin(), keys.end());
    } else {
      EXPECT_EQ(keys, FieldsOf(field->message_type()));
    }
  }
  EXPECT_EQ(of_feature_models, FieldsOf(pb::FeatureModelProto::descriptor()));
}

// What a model of features does not describe, it refuses.
TEST(ReferencePages, FeatureModelsDescribeTheKeysThatTheyTake) {
  const ModelRegistry models = ModelRegistry::WithBuiltins();
  for (const FeatureModelKind& kind : FeatureModelKinds()) {
    const std::set<std::string> keys = TopKeysOf(*models.Doc(kind.name));
    pb::FeatureModelProto config;
    config.set_embedding_dim(4);
    config.add_hidden(8);
    config.set_cross_layers(2);
    config.set_classes(3);
    config.set_product("auto");
    std::set<std::string> refused;
    for (const ModelProblem& problem : FeatureModel::Problems(kind, config)) {
      if (absl::StartsWith(problem.message, "is no key of model")) refused.insert(problem.key);
    }
    for (const char* key : {"embedding_dim", "hidden", "cross_layers", "classes", "product"})
      EXPECT_NE(keys.contains(key), refused.contains(key)) << kind.name << " " << key;
  }
}

TEST(ReferencePages, DescribesOneModel) {
  const ModelRegistry models = ModelRegistry::WithBuiltins();
  MU_ASSERT_OK_AND_ASSIGN(const std::string text, DescribeModel(models, "matrix_factorization"));
  EXPECT_THAT(text, HasSubstr("\ndim            whole number  required  length of the vectors"));
  EXPECT_THAT(text, HasSubstr("\nl2             number        0         weight of"));
  EXPECT_THAT(DescribeModel(models, "deepmf"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("did you mean `deepfm`?")));
  EXPECT_THAT(
      DescribeModel(models, ""),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("name a model, as in `coordinator describe cnn`; there are cnn, ")));
  EXPECT_THAT(ModelList(models), HasSubstr("\ndlrm                   Probability of a click"));
}

struct LineOptions {
  int64_t dim = 16;
  void Describe(ModelOptions& options) {
    options.Int("dim", &dim, "length of the vectors", {.least = 1});
  }
};

TEST(ReferencePages, UsersModelsDescribeThemselves) {
  ModelRegistry models = ModelRegistry::WithBuiltins();
  MU_ASSERT_OK(models.RegisterJson("silent", [](const std::string&) {
    return absl::StatusOr<std::unique_ptr<Model>>(absl::UnimplementedError(""));
  }));
  MU_ASSERT_OK(models.RegisterOptions<LineOptions>("line", "A line", [](const LineOptions&) {
    return absl::StatusOr<std::unique_ptr<Model>>(absl::UnimplementedError("no more"));
  }));
  MU_ASSERT_OK_AND_ASSIGN(const std::string line, DescribeModel(models, "line"));
  EXPECT_EQ(line,
            "line: A line\n\nKEY  TYPE          DEFAULT  MEANING\ndim  whole number  16       "
            "length of the vectors\n");
  MU_ASSERT_OK_AND_ASSIGN(const std::string silent, DescribeModel(models, "silent"));
  EXPECT_THAT(silent, HasSubstr("does not describe them"));
  pb::ModelProto config;
  config.mutable_custom()->set_name("line");
  config.mutable_custom()->set_json("{\"dim\": 0}");
  EXPECT_THAT(models.Create(config), StatusIs(absl::StatusCode::kInvalidArgument,
                                              "model.line.dim: must be at least 1, not 0"));
  config.mutable_custom()->set_json("{\"dim\": 3}");
  EXPECT_THAT(models.Create(config), StatusIs(absl::StatusCode::kUnimplemented, "no more"));
}

}  // namespace
}  // namespace mu
