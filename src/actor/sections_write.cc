// A frozen actor to sections.
#include <algorithm>
#include <cstring>
#include <utility>

#include "actor/actor_sections.h"
#include "actor/attributes.h"
#include "tensor/op_args.h"

namespace driftwood::actor {
namespace {

using snapshot::ByteSpan;
using snapshot::Digest;
using snapshot::Section;
using snapshot::SectionTensor;

template <typename T>
std::string number(T value) {
  return std::to_string(value);
}

SectionTensor tensor(std::string name, DType dtype, std::vector<int64_t> shape, std::string layout,
                     ByteSpan bytes) {
  SectionTensor made;
  made.name = std::move(name);
  made.dtype = dtype;
  made.shape = std::move(shape);
  made.layout = std::move(layout);
  made.chunks.push_back(bytes);
  return made;
}

template <typename T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string joined(const std::vector<std::string>& items) {
  std::vector<std::string> escaped;
  for (const std::string& item : items)
    escaped.push_back(std::string("=").append(escape(item)));  // an empty item stays one
  return join(escaped);
}

std::string timers_text(const ActorLife& life) {
  std::vector<std::string> items;
  for (const FrozenTimer& t : life.timers) items.push_back(number(t.tag) + "," + number(t.remaining_ns));
  return join(items);
}

std::string running_text(const GeneratesState& state) {
  std::vector<std::string> items;
  for (const Generate& g : state.running) {
    items.push_back(join({number(g.tag), number(g.serial), number(g.session), g.stop_at_end ? "1" : "0",
                          number(g.max_tokens), number(g.produced)},
                         ','));
  }
  return join(items);
}

std::string ended_text(const GeneratesState& state) {
  std::vector<std::string> items;
  for (const GenerateDone& d : state.ended) {
    items.push_back(join({number(d.tag), number(d.session), number(static_cast<int32_t>(d.reason)),
                          number(d.tokens), std::string("=").append(escape(d.message))},
                         ','));
  }
  return join(items);
}

std::string forks_text(const ActorLife& life) {
  std::vector<std::string> items;
  for (const ForkNotice& f : life.forks) items.push_back(number(f.tag) + "," + number(f.child));
  return join(items);
}

std::string generations_text(const ActorLife& life) {
  std::vector<std::string> items;
  for (const Session& slot : life.slots) items.push_back(number(slot.generation));
  return join(items);
}

void add_sampling(const sampler::SamplerParams& p, std::map<std::string, std::string>* attributes) {
  std::map<std::string, std::string>& a = *attributes;
  a["temperature"] = float_text(p.temperature);
  a["top_k"] = number(p.top_k);
  a["top_p"] = float_text(p.top_p);
  a["min_p"] = float_text(p.min_p);
  a["repetition_penalty"] = float_text(p.repetition_penalty);
  a["presence_penalty"] = float_text(p.presence_penalty);
  a["frequency_penalty"] = float_text(p.frequency_penalty);
  a["penalty_last_n"] = number(p.penalty_last_n);
  a["seed"] = number(p.seed);
  a["stream"] = number(p.stream);
  std::vector<std::string> bias;
  for (const auto& [id, value] : p.logit_bias) bias.push_back(number(id) + "," + float_text(value));
  a["logit_bias"] = join(bias);
}

}  // namespace

std::span<const LimitField> limit_fields() {
#define DW_LIMIT(field)                                                        \
  {#field, [](const ActorLimits& l) { return static_cast<int64_t>(l.field); }, \
   [](ActorLimits* l, int64_t v) { l->field = static_cast<decltype(l->field)>(v); }}
  static const LimitField fields[] = {
      DW_LIMIT(max_memory_bytes),
      {"handler_deadline_ms", [](const ActorLimits& l) { return int64_t{l.handler_deadline.count()}; },
       [](ActorLimits* l, int64_t v) { l->handler_deadline = std::chrono::milliseconds(v); }},
      DW_LIMIT(max_tokens),
      DW_LIMIT(max_sessions),
      DW_LIMIT(max_message_bytes),
      DW_LIMIT(max_mailbox),
      DW_LIMIT(max_generates),
      DW_LIMIT(max_timers),
      DW_LIMIT(max_effect_bytes),
  };
#undef DW_LIMIT
  return fields;
}

snapshot::Identity identity_of(const FrozenActor& frozen) {
  const engine::SessionIdentity& model = frozen.identity.model;
  return {model.model_fingerprint, frozen.identity.module_hash, frozen.identity.abi, model.numerics_id,
          model.kv_format,         model.kv_geometry,           model.rope};
}

ActorIdentity identity_from(const snapshot::Identity& identity) {
  return {identity.module_hash,
          identity.abi,
          {identity.model_fingerprint, identity.numerics_id, identity.kv_format, identity.block_geometry,
           identity.rope}};
}

ByteSpan DescribedActor::keep(std::vector<uint8_t> bytes) {
  buffers_.push_back(std::make_unique<std::vector<uint8_t>>(std::move(bytes)));
  return *buffers_.back();
}

void DescribedActor::add_actor(const FrozenActor& frozen) {
  const ActorLife& life = frozen.life;
  Section section;
  section.name = names::kActor;
  section.kind = "actor";
  std::map<std::string, std::string>& a = section.attributes;
  a["name"] = escape(frozen.name);
  a["epoch"] = number(life.epoch);
  a["sequence"] = number(life.sequence);
  a["handlers_run"] = number(life.handlers_run);
  a["messages_dropped"] = number(life.messages_dropped);
  a["started"] = life.started ? "1" : "0";
  a["tokens_appended"] = number(life.tokens_appended);
  a["tokens_generated"] = number(life.tokens_generated);
  a["last_error"] = escape(life.last_error);
  a["random_seed"] = number(life.draws.seed);
  a["random_words"] = number(life.draws.random_words);
  a["clock_reads"] = number(life.draws.clock_reads);
  a["clock_realtime_ns"] = number(life.draws.last_realtime_ns);
  a["clock_monotonic_ns"] = number(life.draws.last_monotonic_ns);
  a["timers"] = timers_text(life);
  a["generates"] = running_text(life.generates);
  a["generates_ended"] = ended_text(life.generates);
  a["generates_turn"] = number(life.generates.turn);
  a["generates_serial"] = number(life.generates.last_serial);
  a["forks"] = forks_text(life);
  a["session_generations"] = generations_text(life);
  for (const LimitField& field : limit_fields()) {
    a[std::string("limit_") + field.name] = number(field.get(frozen.setup.limits));
  }
  a["args"] = joined(frozen.setup.args);
  std::vector<std::string> env;
  for (const auto& [key, value] : frozen.setup.env) env.push_back(key + "=" + value);
  a["env"] = joined(env);
  std::vector<std::string> folders;
  for (const FolderGrant& grant : frozen.setup.folders) {
    folders.push_back((grant.writable ? "w" : "r") + grant.guest_path);
  }
  a["folders"] = joined(folders);
  if (!frozen.setup.config.empty()) {
    const auto size = static_cast<int64_t>(frozen.setup.config.size());
    section.tensors.push_back(tensor("config", DType::kU8, {size}, "[byte]", frozen.setup.config));
  }
  contents_.sections.push_back(std::move(section));
}

void DescribedActor::add_mailbox(const FrozenActor& frozen) {
  if (frozen.life.mailbox.empty()) return;
  std::vector<uint64_t> table;
  std::vector<uint8_t> bytes;
  for (const Message& message : frozen.life.mailbox) {
    table.insert(table.end(), {message.sender, message.epoch, message.sequence, message.bytes.size()});
    bytes.insert(bytes.end(), message.bytes.begin(), message.bytes.end());
  }
  const auto count = static_cast<int64_t>(frozen.life.mailbox.size());
  const auto size = static_cast<int64_t>(bytes.size());
  Section section;
  section.name = names::kMailbox;
  section.kind = "mailbox";
  section.tensors.push_back(tensor("table", DType::kU64, {count, 4},
                                   "[message](sender, its epoch, its sequence, length)",
                                   keep(bytes_of(table))));
  if (size > 0) {
    section.tensors.push_back(tensor("bytes", DType::kU8, {size}, "[byte]", keep(std::move(bytes))));
  }
  contents_.sections.push_back(std::move(section));
}

void DescribedActor::add_module(const FrozenActor& frozen) {
  if (frozen.module == nullptr) return;
  const std::span<const uint8_t> code = frozen.module->code();
  Section section;
  section.name = names::kModule;
  section.kind = "module";
  section.attributes["name"] = escape(frozen.module->name());
  section.tensors.push_back(
      tensor("code", DType::kU8, {static_cast<int64_t>(code.size())}, "WebAssembly binary", code));
  section.tensors.back().piece_bytes = kMemoryPieceBytes;
  contents_.sections.push_back(std::move(section));
}

void DescribedActor::add_globals(const FrozenActor& frozen) {
  if (frozen.globals.empty()) return;
  std::vector<uint64_t> values;
  for (const wasm::GlobalValue& g : frozen.globals) {
    values.insert(values.end(), {g.index, static_cast<uint64_t>(g.type), g.bits, g.high_bits});
  }
  Section section;
  section.name = names::kGlobals;
  section.kind = "globals";
  section.attributes["types"] = "0 i32 1 i64 2 f32 3 f64 4 v128";
  section.tensors.push_back(tensor("values", DType::kU64, {static_cast<int64_t>(frozen.globals.size()), 4},
                                   "[global](index, type, low bits, high bits)", keep(bytes_of(values))));
  contents_.sections.push_back(std::move(section));
}

// The memory whole: its image mapped once more, the patches laid over it. Pieces without a patch keep the
// digest that the image has for them.
Status DescribedActor::add_memory(const FrozenActor& frozen) {
  const wasm::FrozenMemory& memory = frozen.memory;
  const uint64_t bytes = memory.image.memory_bytes;
  Section section;
  section.name = names::kMemory;
  section.kind = "linear_memory";
  section.attributes["memory_bytes"] = number(bytes);
  if (bytes == 0) {
    contents_.sections.push_back(std::move(section));
    return Status::ok();
  }
  DW_ASSIGN_OR_RETURN(region::Region* const view, map(memory.image.pieces, bytes));
  const size_t pieces = bytes / kMemoryPieceBytes;
  static const Digest kZeroPage =
      snapshot::blake3(ByteSpan(std::vector<uint8_t>(kMemoryPieceBytes, uint8_t{0})));
  std::vector<Digest> known(pieces, kZeroPage);
  const uint64_t image_pieces = memory.image.image_bytes() / kMemoryPieceBytes;
  for (uint64_t i = 0; i < image_pieces; ++i) {
    const bool have = frozen.image_digests != nullptr && i < frozen.image_digests->size();
    known[i] = have ? (*frozen.image_digests)[i] : Digest{};
  }
  for (const wasm::MemoryPatch& patch : memory.patches) {
    std::memcpy(view->base() + patch.offset, patch.bytes.data(), patch.bytes.size());
    const uint64_t last = (patch.offset + patch.bytes.size() - 1) / kMemoryPieceBytes;
    for (uint64_t i = patch.offset / kMemoryPieceBytes; i <= last; ++i) known[i] = Digest{};
  }
  SectionTensor pages =
      tensor("pages", DType::kU8, {static_cast<int64_t>(bytes)}, "[byte]", ByteSpan(view->base(), bytes));
  pages.piece_bytes = kMemoryPieceBytes;
  pages.known = std::move(known);
  section.tensors.push_back(std::move(pages));
  contents_.sections.push_back(std::move(section));
  return Status::ok();
}

Result<region::Region*> DescribedActor::map(std::span<const region::FileImage> pieces, uint64_t bytes) {
  DW_ASSIGN_OR_RETURN(auto mapping, region::Region::create_on_file(pieces, bytes, 0, bytes));
  mappings_.push_back(std::move(mapping));
  return mappings_.back().get();
}

Status DescribedActor::add_session(const FrozenActor& frozen, size_t slot_index, size_t session_index,
                                   const KnownBlocks& known) {
  const Session& slot = frozen.life.slots[slot_index];
  const engine::FrozenSession& session = frozen.sessions[session_index];
  Section section;
  section.name = names::kSession + number(slot_index);
  section.kind = "session";
  std::map<std::string, std::string>& a = section.attributes;
  a["handle"] = number(slot.handle);
  a["capacity"] = number(slot.capacity);
  a["generating"] = slot.generating ? "1" : "0";
  a["masked"] = slot.masked ? "1" : "0";
  a["max_tokens"] = number(session.max_tokens);
  a["computed"] = number(session.computed);
  a["rope"] = escape(session.identity.rope);
  a["has_logits"] = session.has_logits ? "1" : "0";
  a["layers"] = number(session.kv_shape.layers);
  a["kv_heads"] = number(session.kv_shape.kv_heads);
  a["head_dim"] = number(session.kv_shape.head_dim);
  a["block_tokens"] = number(kKvBlockTokens);
  a["block_bytes"] = number(session.block_bytes);
  add_sampling(session.sampling, &a);
  const auto count = static_cast<int64_t>(session.tokens.size());
  if (count > 0) {
    section.tensors.push_back(
        tensor("tokens", DType::kI32, {count}, "[token]", keep(bytes_of(session.tokens))));
  }
  if (session.has_logits) {
    section.tensors.push_back(tensor(
        "logits", DType::kF32, {static_cast<int64_t>(session.logits.size())}, "[vocabulary]",
        {reinterpret_cast<const uint8_t*>(session.logits.data()), session.logits.size() * sizeof(float)}));
  }
  if (slot.masked) {
    section.tensors.push_back(tensor("mask", DType::kU64, {static_cast<int64_t>(slot.mask.size())},
                                     "[word] bit i of word i / 64 allows token i",
                                     keep(bytes_of(slot.mask))));
  }
  DW_RETURN_IF_ERROR(add_kv(frozen, session_index, known, &section));
  contents_.sections.push_back(std::move(section));
  return Status::ok();
}

Status DescribedActor::add_kv(const FrozenActor& frozen, size_t session_index, const KnownBlocks& known,
                              Section* section) {
  const engine::FrozenSession& session = frozen.sessions[session_index];
  const size_t blocks = std::max(session.kv_blocks.size(), session.kv_files.size());
  if (blocks == 0) return Status::ok();
  SectionTensor kv;
  kv.name = "kv";
  kv.dtype = session.kv_shape.dtype;
  kv.shape = {static_cast<int64_t>(blocks), session.block_bytes / static_cast<int64_t>(dtype_size(kv.dtype))};
  kv.layout = "[block][layer](k[head][dim][token],v[head][token][dim])";
  kv.piece_bytes = static_cast<uint64_t>(session.block_bytes);
  for (const std::span<const uint8_t> block : session.kv_blocks) {
    kv.chunks.push_back(block);
    const auto it = known.find(block.data());
    kv.known.push_back(it == known.end() ? Digest{} : it->second);
  }
  if (!session.kv_files.empty()) {
    const uint64_t bytes = blocks * kv.piece_bytes;
    DW_ASSIGN_OR_RETURN(region::Region* const view, map(session.kv_files, bytes));
    kv.chunks.emplace_back(view->base(), bytes);
    if (session_index < frozen.kv_digests.size()) kv.known = frozen.kv_digests[session_index];
  }
  section->tensors.push_back(std::move(kv));
  return Status::ok();
}

Result<std::unique_ptr<DescribedActor>> describe_actor(const FrozenActor& frozen,
                                                       const snapshot::Origin& origin,
                                                       const KnownBlocks& known) {
  std::unique_ptr<DescribedActor> described(new DescribedActor());
  described->contents_.identity = identity_of(frozen);
  described->contents_.origin = origin;
  described->add_actor(frozen);
  described->add_mailbox(frozen);
  described->add_module(frozen);
  described->add_globals(frozen);
  DW_RETURN_IF_ERROR(described->add_memory(frozen));
  size_t session = 0;
  for (size_t i = 0; i < frozen.life.slots.size(); ++i) {
    if (frozen.life.slots[i].handle == 0) continue;
    DW_CHECK(session < frozen.sessions.size(), "one frozen session for every open slot");
    DW_RETURN_IF_ERROR(described->add_session(frozen, i, session++, known));
  }
  return described;
}

}  // namespace driftwood::actor
