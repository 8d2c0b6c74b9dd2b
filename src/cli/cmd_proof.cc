#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/proof.h"

namespace driftwood::cli {
namespace {

struct ProofFlags {
  HostFlags host;
  bool json = false;
};

const char* yes_no(bool value) { return value ? "yes" : "NO"; }

void print_json(const MemoryProof& m, const std::optional<ModelProof>& model,
                const device::DeviceInfo& info) {
  nlohmann::ordered_json out = {
      {"region_equals_wasm", m.region_equals_wasm},
      {"region_equals_device", m.region_equals_device},
      {"device_pointer_is_host_by_nature", m.device_pointer_is_host_by_nature},
      {"rss_zero_copy_mb", m.rss_zero_copy_mb},
      {"rss_copy_mb", m.rss_copy_mb},
      {"gemm_elements", m.gemm_elements},
      {"gemm_errors", m.gemm_errors},
      {"gemm_us", m.gemm_us},
      {"gemm_copy_us", m.gemm_copy_us},
      {"host_call_ns", m.host_call_ns},
  };
  if (model) {
    out["model_load_ms"] = model->model_load_ms;
    out["prefill_5_ms"] = model->prefill_5_ms;
    out["per_token_ms"] = model->per_token_ms;
    out["per_token_native_ms"] = model->per_token_native_ms;
    out["guest_per_token_us"] = model->guest_per_token_us;
    out["same_tokens"] = model->same_tokens;
  }
  out["device"] = info.name;
  out["isa"] = info.isa;
  out["threads"] = info.threads;
  out["numerics_id"] = info.numerics_id;
  std::printf("%s\n", out.dump(2).c_str());
}

// The prototype's figures are those it published for Apple Silicon with Metal; "-": not published.
void print_table(const MemoryProof& m, const std::optional<ModelProof>& model,
                 const device::DeviceInfo& info) {
  const auto row = [](const char* what, const std::string& ours, const char* prototype) {
    std::printf("  %-58s %14s   %s\n", what, ours.c_str(), prototype);
  };
  const auto number = [](double value, const char* unit) {
    char text[48];
    std::snprintf(text, sizeof text, "%.*f %s", value < 10 ? 3 : 1, value, unit);
    return std::string(text);
  };
  std::printf("  %-58s %14s   %s\n", "", "here", "published prototype (Apple Silicon)");
  row("linear memory is the region (same pointer)", yes_no(m.region_equals_wasm), "yes");
  row("the device's pointer is the region's", yes_no(m.region_equals_device),
      m.device_pointer_is_host_by_nature ? "yes (on a CPU it is so by nature)" : "yes");
  row("memory for the device to work on 16 MiB in place", number(m.rss_zero_copy_mb, "MB"), "0.03 MB");
  row("the same through a copy", number(m.rss_copy_mb, "MB"), "16.78 MB");
  row("GEMM 128x128 on guest memory: wrong elements",
      std::to_string(m.gemm_errors) + " of " + std::to_string(m.gemm_elements), "0 of 16384");
  row("  time, in place", number(m.gemm_us, "us"), "-");
  row("  time, with copies", number(m.gemm_copy_us, "us"), "-");
  row("an empty host call", number(m.host_call_ns, "ns"), "-");
  if (model) {
    row("model load (second start)", number(model->model_load_ms, "ms"), "-");
    row("prefill of 5 tokens", number(model->prefill_5_ms, "ms"), "-");
    row("one token, through the guest", number(model->per_token_ms, "ms"), "-");
    row("one token, native", number(model->per_token_native_ms, "ms"), "-");
    row("  the guest's share, measured alone", number(model->guest_per_token_us, "us"), "-");
    row("guest and native tokens equal", yes_no(model->same_tokens), "-");
  }
  std::printf("  device: %s; numerics: %s\n", info.description.c_str(), info.numerics_id.c_str());
}

Status run_proof(const ProofFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto host, ActorHost::open(flags.host));
  DW_ASSIGN_OR_RETURN(const MemoryProof memory, prove_memory(*host));
  std::optional<ModelProof> model;
  if (host->opened().engine != nullptr) {
    DW_ASSIGN_OR_RETURN(model, prove_model(*host));
  }
  const device::DeviceInfo& info = host->opened().device->info();
  if (flags.json) {
    print_json(memory, model, info);
  } else {
    print_table(memory, model, info);
  }
  const bool proven = memory.region_equals_wasm && memory.region_equals_device && memory.gemm_errors == 0 &&
                      (!model || model->same_tokens);
  return proven ? Status::ok() : internal_error("the proof failed; see the lines that say NO");
}

}  // namespace

void add_proof(CLI::App& app, Action* action) {
  CLI::App* cmd =
      app.add_subcommand("proof", "Show that guest, CPU and device work on the same bytes, and the cost");
  cmd->footer("Example: driftwood proof --model smollm2-135m --json");
  auto flags = std::make_shared<ProofFlags>();
  add_host_flags(cmd, &flags->host);
  cmd->add_flag("--json", flags->json, "Print JSON");
  cmd->callback([=] { *action = [=] { return run_proof(*flags); }; });
}

}  // namespace driftwood::cli
