// docs/reference/layers.md is what coordinator/frontend/layer_docs.cc says, and that says something
// about every layer, loss and call of the headers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/graph/op_table.h"
#include "coordinator/frontend/layer_docs.h"

namespace mu {
namespace {

constexpr char kPage[] = "docs/reference/layers.md";
constexpr char kBegin[] =
    R"(# Layers and losses

Made by `tests/reference/layers_page_test.cc` from `coordinator/frontend/layer_docs.cc`; do not edit it. To write it anew: `MUSTER_WRITE_PAGES=1 build/tests/reference_test`.

All of them are made of the [ops](ops.md), so their gradients follow. The headers in `coordinator/frontend` have their options and sources.

## Layers

A layer is created once, outside of functions, and called inside any number of them. NAME is what the program calls it; `layers.h` and `layers_*.h`.

)";

std::string Text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Row(std::initializer_list<std::string> cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    absl::StrAppend(&row, " ", absl::StrReplaceAll(cell, {{"|", "\\|"}}), " |");
  }
  return row + "\n";
}

void AppendCalls(const std::vector<CallDoc>& calls, std::string* page) {
  absl::StrAppend(page, "| call | shapes | what it computes |\n|---|---|---|\n");
  for (const CallDoc& call : calls) {
    absl::StrAppend(page, Row({absl::StrCat("`", call.call, "`"), call.shapes, call.doc}));
  }
}

std::string Page() {
  std::string page = kBegin;
  absl::StrAppend(&page, "| layer | shapes | variables | what it computes |\n|---|---|---|---|\n");
  for (const LayerDoc& layer : LayerDocs()) {
    absl::StrAppend(
        &page, Row({absl::StrCat("`", layer.name, "`"), layer.shapes, layer.variables, layer.doc}));
  }
  absl::StrAppend(&page,
                  "\n## Losses\n\nOf `losses.h`, beside the ops `sigmoid_cross_entropy`, "
                  "`softmax_cross_entropy`, `sparse_softmax_cross_entropy` and "
                  "`mean_squared_error`.\n\n");
  AppendCalls(LossDocs(), &page);
  absl::StrAppend(&page, "\n## Other calls\n\nOf `neural_ops.h`.\n\n");
  AppendCalls(NeuralCallDocs(), &page);
  return page;
}

TEST(LayersPage, IsWhatTheCodeSays) {
  const std::string wanted = Page();
  if (std::getenv("MUSTER_WRITE_PAGES") != nullptr) std::ofstream(kPage) << wanted;
  EXPECT_EQ(Text(kPage), wanted)
      << "write it anew: MUSTER_WRITE_PAGES=1 build/tests/reference_test";
}

// All first groups of `pattern`.
std::set<std::string> Found(const std::string& path, const std::string& pattern) {
  const std::string text = Text(path);
  EXPECT_FALSE(text.empty()) << path;
  std::set<std::string> names;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    names.insert((*at)[1].str());
  }
  return names;
}

std::set<std::string> NamesOf(const std::vector<CallDoc>& docs) {
  std::set<std::string> names;
  for (const CallDoc& doc : docs) names.insert(doc.call);
  return names;
}

TEST(LayersPage, HasEveryLayerLossAndCall) {
  const std::string folder = "coordinator/frontend/";
  std::set<std::string> layers;
  for (const char* file : {"layers.h", "layers_attention.h", "layers_embedding.h", "layers_image.h",
                           "layers_interaction.h", "layers_norm.h"}) {
    layers.merge(Found(folder + file, "\nclass (\\w+) \\{"));
  }
  std::set<std::string> documented;
  for (const LayerDoc& layer : LayerDocs()) documented.insert(layer.name);
  EXPECT_EQ(documented, layers);

  EXPECT_EQ(NamesOf(LossDocs()), Found(folder + "losses.h", "\nSym (\\w+)\\("));

  // What is no op by itself: no op's name is the call's in other letters.
  std::set<std::string> ops = {"layernormalize", "rmsnormalize"};
  for (const OpDef* def : AllOps().All()) {
    ops.insert(absl::StrReplaceAll(def->name, {{"_", ""}}));
  }
  std::set<std::string> composed;
  for (const std::string& call : Found(folder + "neural_ops.h", "\nSym (\\w+)\\(")) {
    std::string lower;
    for (const char c : call) lower += static_cast<char>(std::tolower(c));
    if (ops.count(lower) == 0) composed.insert(call);
  }
  EXPECT_EQ(NamesOf(NeuralCallDocs()), composed);
}

}  // namespace
}  // namespace mu
