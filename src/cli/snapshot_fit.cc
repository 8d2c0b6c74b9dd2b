#include "cli/snapshot_fit.h"

#include <string_view>
#include <vector>

#include "actor/actor_sections.h"

namespace driftwood::cli {
namespace {

constexpr char kNumericsNote[] = "numerics_changed";

}  // namespace

std::map<std::string, std::string> inherited_notes(const snapshot::Origin& origin) {
  const auto changed = origin.notes.find(kNumericsNote);
  if (changed == origin.notes.end()) return {};
  return {*changed};
}

Status fit_actor(const std::string& which, const wasm::Module& module, engine::Engine* engine,
                 bool allow_numerics_change, actor::FrozenActor* frozen,
                 std::map<std::string, std::string>* notes) {
  const engine::SessionIdentity& model = frozen->identity.model;
  actor::ActorIdentity here{module.report().hash_hex, actor::kAbiText, model};
  if (!model.model_fingerprint.empty()) {  // an actor that never had a model needs none
    if (engine == nullptr) {
      return failed_precondition(which + ": needs the model with fingerprint " + model.model_fingerprint +
                                 ", and there is none here: give it with --model");
    }
    here.model = engine->identity(engine->max_context());
  }
  actor::FrozenActor expected;
  expected.identity = here;
  std::vector<std::string_view> exempt;
  if (allow_numerics_change) exempt.push_back("numerics_id");
  const snapshot::Identity found = actor::identity_of(*frozen);
  const Status fits = snapshot::check_identity(found, actor::identity_of(expected), exempt, which);
  if (!fits.is_ok()) {
    const auto differences = snapshot::identity_differences(found, actor::identity_of(expected));
    const bool may = differences.size() == 1 && differences[0].field == "numerics_id";
    return may ? Status(fits.code(),
                        fits.message() +
                            "; --allow-numerics-change goes on under the numerics here, with other bits")
               : fits;
  }
  for (const engine::FrozenSession& session : frozen->sessions) {
    if (engine == nullptr || session.max_tokens <= engine->max_context()) continue;
    return failed_precondition(which + ": one of its sessions may hold " +
                               std::to_string(session.max_tokens) +
                               " tokens, which its arithmetic may depend on; here they are " +
                               std::to_string(engine->max_context()) + " (--context)");
  }
  const std::string before = model.numerics_id;
  if (before == here.model.numerics_id) return Status::ok();
  std::string& note = (*notes)[kNumericsNote];
  note += (note.empty() ? "" : "; ") + before + " to " + here.model.numerics_id;
  frozen->identity.model.numerics_id = here.model.numerics_id;
  for (engine::FrozenSession& session : frozen->sessions)
    session.identity.numerics_id = here.model.numerics_id;
  return Status::ok();
}

}  // namespace driftwood::cli
