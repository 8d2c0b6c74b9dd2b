#include <cstdio>
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_locator.h"
#include "format/checkpoint.h"
#include "text/tokenizer.h"

namespace driftwood::cli {
namespace {

using nlohmann::json;

struct TokenizeFlags {
  std::string model = "smollm2-135m";
  bool jsonl = false;
  bool detokenize = false;
  bool parse_special = false;
  bool add_special = false;
};

Result<json> tokenize_line(const text::Tokenizer& tokenizer, const json& in) {
  if (!in.contains("text") || !in["text"].is_string()) return invalid_argument("needs a string \"text\"");
  text::EncodeOptions options;
  for (const auto& [key, flag] :
       {std::pair("parse_special", &options.parse_special), std::pair("add_special", &options.add_special)}) {
    if (!in.contains(key)) continue;
    if (!in[key].is_boolean())
      return invalid_argument("\"" + std::string(key) + "\" is neither true nor false");
    *flag = in[key].get<bool>();
  }
  DW_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      tokenizer.encode(in["text"].get<std::string>(), options));
  return json{{"ids", ids}};
}

Result<json> detokenize_line(const text::Tokenizer& tokenizer, const json& in) {
  if (!in.contains("ids") || !in["ids"].is_array()) return invalid_argument("needs an array \"ids\"");
  std::vector<int32_t> ids;
  for (const json& id : in["ids"]) {
    if (!id.is_number_integer()) return invalid_argument("an id is not an integer: " + id.dump());
    const bool huge = id.is_number_unsigned() && id.get<uint64_t>() > INT32_MAX;
    if (huge || id.get<int64_t>() < 0 || id.get<int64_t>() >= tokenizer.vocab_size()) {
      return invalid_argument("id " + id.dump() + " is outside the vocabulary of " +
                              std::to_string(tokenizer.vocab_size()) + " tokens");
    }
    ids.push_back(id.get<int32_t>());
  }
  DW_ASSIGN_OR_RETURN(const std::string bytes, tokenizer.decode(ids.data(), ids.size(), true));
  text::Utf8Assembler assembler;
  std::string whole = assembler.push(bytes);
  whole += assembler.finish();
  return json{{"text", whole}};
}

Status run_lines(const text::Tokenizer& tokenizer, bool detokenize) {
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    if (line.empty()) continue;
    const std::string where = "line " + std::to_string(number);
    const json in = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!in.is_object()) return invalid_argument(where + ": not a JSON object");
    Result<json> out = detokenize ? detokenize_line(tokenizer, in) : tokenize_line(tokenizer, in);
    if (!out.is_ok()) return out.status().with_context(where);
    std::printf("%s\n", out->dump().c_str());
  }
  return Status::ok();
}

Status run_tokenize(const TokenizeFlags& flags) {
  DW_ASSIGN_OR_RETURN(const std::string path, locate_model(flags.model));
  DW_ASSIGN_OR_RETURN(const auto checkpoint, format::open_checkpoint(path));
  DW_ASSIGN_OR_RETURN(const auto tokenizer, text::Tokenizer::from_checkpoint(*checkpoint));
  if (flags.jsonl) return run_lines(*tokenizer, flags.detokenize);
  const std::string input((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  if (flags.detokenize) {
    return invalid_argument("--detokenize reads {\"ids\"} lines: add --jsonl");
  }
  DW_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      tokenizer->encode(input, {flags.add_special, flags.parse_special}));
  for (size_t i = 0; i < ids.size(); ++i) std::printf("%s%d", i == 0 ? "" : ",", ids[i]);
  std::printf("\n");
  return Status::ok();
}

}  // namespace

void add_tokenize(CLI::App& app, Action* action) {
  CLI::App* cmd = app.add_subcommand("tokenize", "Text to token ids and back, from standard input");
  cmd->footer(
      "With --jsonl each input line is {\"text\", \"parse_special\", \"add_special\"} and each output line "
      "{\"ids\"};\n"
      "with --detokenize it is the other way round. Without --jsonl the whole input is one text.\n"
      "Example: echo '{\"text\":\"Hello\"}' | driftwood tokenize --model smollm2-135m --jsonl");
  auto flags = std::make_shared<TokenizeFlags>();
  cmd->add_option("--model", flags->model, "Model: path, folder, cache name or short name")
      ->envname("DRIFTWOOD_MODEL")
      ->capture_default_str();
  cmd->add_flag("--jsonl", flags->jsonl, "One JSON object a line, in and out");
  cmd->add_flag("--detokenize", flags->detokenize, "Ids to text");
  cmd->add_flag("--parse-special", flags->parse_special,
                "Special tokens written in the text become their ids");
  cmd->add_flag("--add-special", flags->add_special, "Add the model's begin and end tokens");
  cmd->callback([=] { *action = [=] { return run_tokenize(*flags); }; });
}

}  // namespace driftwood::cli
