#include <algorithm>
#include <cstdio>

#include "cli/composition.h"
#include "cli/printing.h"
#include "cli/snapshot_commands.h"
#include "cli/snapshot_description.h"
#include "cli/snapshot_lineage.h"

namespace driftwood::cli {
namespace {

struct InspectFlags : SnapshotFlags {
  std::string which;
  std::string model = EngineFlags().model;
};

void line(const char* key, const std::string& value) {
  std::printf("%-12s%s\n", key, printable(value).c_str());
}

std::string plain(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

uint64_t number(const Json& value) {
  return value.is_number_unsigned() || value.is_number_integer() ? value.get<uint64_t>() : 0;
}

void print_sizes(const Json& sizes) {
  std::string text = size_text(number(sizes["total"]));
  for (const auto& [name, bytes] : sizes.items()) {
    if (name != "total" && number(bytes) > 0) text += ", " + name + " " + size_text(number(bytes));
  }
  line("sizes", text);
}

void print_actor(const Json& all) {
  const Json& actor = all["actor"];
  line("actor", plain(actor["name"]) + ", epoch " + plain(actor["epoch"]) + ", " +
                    plain(actor["handlers_run"]) + " handlers, " + plain(actor["tokens_appended"]) +
                    " tokens appended, " + plain(actor["tokens_generated"]) + " generated");
  if (!actor["args"].empty())
    line("  args", actor["args"].dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!actor["env"].empty()) line("  env", actor["env"].dump(-1, ' ', false, Json::error_handler_t::replace));
  for (const Json& folder : actor["folders"]) {
    line("  folder", plain(folder["guest_path"]) + (folder["writable"] == Json(true) ? ", writable" : ""));
  }
  std::string limits;
  for (const auto& [name, value] : all["limits"].items()) {
    limits += (limits.empty() ? "" : ", ") + name + " " + plain(value);
  }
  line("  limits", limits);
  uint64_t bytes = 0;
  for (const Json& message : all["mailbox"]) bytes += number(message["bytes"]);
  line("  mailbox", all["mailbox"].empty()
                        ? "empty"
                        : count_text(all["mailbox"].size(), "message", "messages") + ", " + size_text(bytes));
  for (const Json& timer : all["timers"]) {
    line("  timer", "tag " + plain(timer["tag"]) + ", in " +
                        std::to_string(number(timer["remaining_ns"]) / 1'000'000) + " ms");
  }
  for (const Json& generate : all["generates"]) {
    line("  answer", "tag " + plain(generate["tag"]) + ", " + plain(generate["produced"]) + " tokens so far");
  }
}

void print_session(const Json& session) {
  line(plain(session["section"]).c_str(),
       count_text(number(session["tokens"]), "token", "tokens") + " (" + plain(session["computed"]) +
           " computed) of " + plain(session["capacity"]) + ", KV " +
           count_text(number(session["kv_blocks"]), "block", "blocks") + ", " +
           size_text(number(session["kv_bytes"])) + (session["generating"] == Json(1) ? ", generating" : ""));
  const Json& s = session["sampling"];
  line("  sampling", "temperature " + plain(s["temperature"]) + ", top-k " + plain(s["top_k"]) + ", top-p " +
                         plain(s["top_p"]) + ", min-p " + plain(s["min_p"]) + ", seed " + plain(s["seed"]) +
                         ", stream " + plain(s["stream"]));
  if (session.contains("text")) {
    line("  text", "..." + in_quotes(session["text"].get<std::string>()));
  } else if (!session["last_tokens"].empty()) {
    line("  last ids", session["last_tokens"].dump());
    line("  text", "not shown: " + plain(session["text_unavailable"]));
  }
}

void print_description(const Json& all) {
  line("snapshot", plain(all["hash"]));
  if (!all["names"].empty()) {
    std::string names;
    for (const Json& name : all["names"]) names += (names.empty() ? "" : ", ") + plain(name);
    line("names", names);
  }
  line("created", time_text(number(all["created_ns"])) + " UTC");
  line("parent", plain(all["parent"]).empty() ? "none" : short_hash(plain(all["parent"])));
  for (const auto& [key, value] : all["notes"].items()) line("note", key + ": " + plain(value));
  std::printf("identity\n");
  for (const auto& [field, value] : all["identity"].items()) {
    std::printf("  %-19s%s\n", field.c_str(), plain(value).empty() ? "-" : printable(plain(value)).c_str());
  }
  print_sizes(all["sizes"]);
  if (all.contains("actor")) print_actor(all);
  for (const Json& session : all["sessions"]) print_session(session);
  for (const Json& problem : all["problems"]) std::printf("damaged: %s\n", printable(plain(problem)).c_str());
}

// Never fails: without the model there is no text, and the reason is told instead.
void add_texts(const InspectFlags& flags, const SnapshotView& view, Json* all) {
  for (Json& session : (*all)["sessions"]) {
    const auto ids = session["last_tokens"].get<std::vector<int32_t>>();
    const auto text = text_of_tokens(flags.model, view.identity().model_fingerprint, ids);
    if (text.is_ok()) {
      session["text"] = *text;
    } else {
      session["text_unavailable"] = text.status().message();
    }
  }
}

Status inspect(const InspectFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto view, SnapshotView::open(flags.store, flags.which));
  Json all = describe_snapshot(*view);
  add_texts(flags, *view, &all);
  std::vector<snapshot::StoreEntry> entries;
  all["names"] = Json::array();
  if (view->store() != nullptr) {
    DW_ASSIGN_OR_RETURN(entries, view->store()->list());
    for (const snapshot::StoreEntry& entry : entries) {
      if (entry.hash == view->hash()) all["names"] = entry.names;
    }
  }
  const Lineage lineage(entries, view->hash());
  if (flags.json) {
    if (view->store() != nullptr) all["lineage"] = lineage.json();
    print_json(all);
    return Status::ok();
  }
  print_description(all);
  if (view->store() != nullptr) {
    std::printf("lineage\n");
    lineage.print();
  }
  return Status::ok();
}

}  // namespace

void add_snapshot_inspect(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd = parent.add_subcommand("inspect", "Show what is in a snapshot");
  cmd->footer(
      "Needs no model; with it at hand, the text of the last tokens is shown.\n"
      "Example: driftwood snapshot inspect half-told");
  auto flags = std::make_shared<InspectFlags>();
  flags->store.inherited = store;
  cmd->add_option("which", flags->which, "Snapshot: name, hash, or FILE")->required();
  cmd->add_option("--model", flags->model, "Model whose tokenizer shows the text")
      ->envname("DRIFTWOOD_MODEL")
      ->capture_default_str();
  add_snapshot_flags(cmd, flags.get());
  cmd->callback([=] { *action = [=] { return inspect(*flags); }; });
}

}  // namespace driftwood::cli
