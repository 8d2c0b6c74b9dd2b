#include <cstdio>

#include "cli/printing.h"
#include "cli/snapshot_commands.h"
#include "cli/snapshot_diff.h"

namespace driftwood::cli {
namespace {

constexpr size_t kMostPrinted = 20;

struct DiffFlags : SnapshotFlags {
  std::string a;
  std::string b;
};

std::string plain(const Json& value) {
  return printable(value.is_null()     ? "(none)"
                   : value.is_string() ? value.get<std::string>()
                                       : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// The first of a list, each by `print`, and how many more there are.
template <typename Print>
void print_list(const Json& list, Print print) {
  for (size_t i = 0; i < list.size() && i < kMostPrinted; ++i) print(list[i]);
  if (list.size() > kMostPrinted) std::printf("  ... and %zu more (--json)\n", list.size() - kMostPrinted);
}

// "0-3, 7"
std::string ranges_text(const Json& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() &&
           numbers[last + 1].get<uint64_t>() == numbers[last].get<uint64_t>() + 1)
      ++last;
    text += (text.empty() ? "" : ", ") + numbers[i].dump() + (last > i ? "-" + numbers[last].dump() : "");
    i = last + 1;
  }
  return text;
}

void print_memory(const Json& memory) {
  if (memory.is_null()) return;
  if (memory["bytes_a"] != memory["bytes_b"]) {
    std::printf("memory: %s and %s bytes\n", plain(memory["bytes_a"]).c_str(),
                plain(memory["bytes_b"]).c_str());
  }
  std::printf("memory: %s bytes differ, on %s pages\n", plain(memory["bytes_differing"]).c_str(),
              plain(memory["pages_differing"]).c_str());
  print_list(memory["ranges"], [](const Json& range) {
    const auto begin = range["begin"].get<uint64_t>(), end = range["end"].get<uint64_t>();
    std::printf("  0x%08llx to 0x%08llx, %llu bytes\n", static_cast<unsigned long long>(begin),
                static_cast<unsigned long long>(end), static_cast<unsigned long long>(end - begin));
  });
}

void print_session(const Json& session) {
  const std::string name = plain(session["section"]);
  if (session.contains("tokens")) {
    const Json& t = session["tokens"];
    std::printf("%s: %s and %s tokens, from position %s: %s and %s\n", name.c_str(),
                plain(t["count_a"]).c_str(), plain(t["count_b"]).c_str(), plain(t["first_position"]).c_str(),
                plain(t["a"]).c_str(), plain(t["b"]).c_str());
  }
  if (session.contains("kv")) {
    const Json& kv = session["kv"];
    std::printf("%s: KV of %s and %s blocks%s\n", name.c_str(), plain(kv["blocks_a"]).c_str(),
                plain(kv["blocks_b"]).c_str(), kv.contains("shapes_differ") ? " of other shapes" : "");
    if (kv.contains("blocks")) {
      print_list(kv["blocks"], [](const Json& block) {
        const std::string from =
            block.contains("first_token") ? ", from token " + plain(block["first_token"]) : ", padding only";
        std::printf("  block %s: layers %s%s\n", plain(block["block"]).c_str(),
                    ranges_text(block["layers"]).c_str(), from.c_str());
      });
    }
  }
  if (session.contains("logits")) {
    const Json& l = session["logits"];
    if (l.contains("differing")) {
      std::printf("%s: %s logits differ, the first is that of token %s, by %s at most\n", name.c_str(),
                  plain(l["differing"]).c_str(), plain(l["first"]).c_str(), plain(l["largest"]).c_str());
    } else {
      std::printf("%s: %s and %s logits\n", name.c_str(), plain(l["count_a"]).c_str(),
                  plain(l["count_b"]).c_str());
    }
  }
}

void print_diff(const Json& diff) {
  if (diff["equal"] == Json(true)) {
    std::printf("equal: the two hold the same actor\n");
    return;
  }
  print_list(diff["identity"], [](const Json& d) {
    std::printf("identity %s: %s and %s\n", plain(d["field"]).c_str(), plain(d["a"]).c_str(),
                plain(d["b"]).c_str());
  });
  print_list(diff["sections"], [](const Json& d) {
    std::printf("%s: only in %s\n", plain(d["section"]).c_str(),
                d["only_in"] == "a" ? "the first" : "the second");
  });
  print_list(diff["attributes"], [](const Json& d) {
    std::printf("%s %s: %s and %s\n", plain(d["section"]).c_str(), plain(d["key"]).c_str(),
                plain(d["a"]).c_str(), plain(d["b"]).c_str());
  });
  print_memory(diff["memory"]);
  print_list(diff["globals"], [](const Json& d) {
    std::printf("global %s: %s and %s\n", plain(d["index"]).c_str(), plain(d["a"]).c_str(),
                plain(d["b"]).c_str());
  });
  for (const Json& session : diff["sessions"]) print_session(session);
  print_list(diff["tensors"], [](const Json& d) {
    if (d.contains("first_byte")) {
      std::printf("%s: differs from byte %s\n", plain(d["tensor"]).c_str(), plain(d["first_byte"]).c_str());
    } else {
      std::printf("%s: differs in shape\n", plain(d["tensor"]).c_str());
    }
  });
}

Status run_diff(const DiffFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto a, SnapshotView::open(flags.store, flags.a));
  DW_ASSIGN_OR_RETURN(const auto b, SnapshotView::open(flags.store, flags.b));
  DW_ASSIGN_OR_RETURN(const Json diff, diff_snapshots(*a, *b));
  if (flags.json) {
    print_json(diff);
  } else {
    print_diff(diff);
  }
  return Status::ok();
}

}  // namespace

void add_snapshot_diff(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd = parent.add_subcommand("diff", "Compare two snapshots, part by part and byte by byte");
  cmd->footer(
      "Identity, facts, memory by byte ranges, globals, tokens, KV by block and layer, logits.\n"
      "Example: driftwood snapshot diff half-told other-end");
  auto flags = std::make_shared<DiffFlags>();
  flags->store.inherited = store;
  cmd->add_option("a", flags->a, "Snapshot: name, hash, or FILE")->required();
  cmd->add_option("b", flags->b, "The other")->required();
  add_snapshot_flags(cmd, flags.get());
  cmd->callback([=] { *action = [=] { return run_diff(*flags); }; });
}

}  // namespace driftwood::cli
