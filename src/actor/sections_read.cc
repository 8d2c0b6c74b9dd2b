// Sections to a frozen actor.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "actor/actor_sections.h"
#include "actor/attributes.h"
#include "kv/kv_layout.h"
#include "snapshot/container.h"
#include "tensor/op_args.h"

namespace driftwood::actor {
namespace {

using snapshot::StoredSection;
using snapshot::StoredSnapshot;
using snapshot::StoredTensor;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int32_t kMostInt = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostVocabulary = int64_t{1} << 23;  // the sampler's limit; which it is, the model tells

Status bad(const StoredSection& section, const std::string& what) {
  return invalid_argument("section '" + section.name + "': " + what);
}

// A tensor of that type and of `columns` values a row (1: one dimension); null with *status set.
template <typename T>
Result<std::vector<T>> values_of(const StoredSection& section, const char* name, DType dtype,
                                 int64_t columns) {
  const StoredTensor* tensor = section.find(name);
  if (tensor == nullptr) return bad(section, "tensor '" + std::string(name) + "' is missing");
  const bool shaped =
      columns == 1 ? tensor->shape.size() == 1 : tensor->shape.size() == 2 && tensor->shape[1] == columns;
  if (tensor->dtype != dtype || !shaped || tensor->piece_bytes != 0) {
    return bad(section, "tensor '" + std::string(name) + "' has another type or shape than it should");
  }
  std::vector<T> values(tensor->bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor->bytes.data(), values.size() * sizeof(T));
  return values;
}

// "a,b,c" to numbers; false unless there are `count`.
bool numbers(const std::string& item, size_t count, std::vector<int64_t>* values) {
  const std::vector<std::string> parts = split(item, ',');
  values->assign(count, 0);
  if (parts.size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!parse_i64(parts[i], &(*values)[i])) return false;
  }
  return true;
}

void read_texts(AttributeReader* in, const char* key, std::vector<std::string>* texts) {
  std::vector<std::string> items;
  in->list(key, &items);
  for (const std::string& item : items) {
    std::string text;
    if (!item.starts_with('=') || !unescape(std::string_view(item).substr(1), &text)) {
      in->fail(key, "'" + item + "' is no text");
    }
    texts->push_back(std::move(text));
  }
}

void read_timers(AttributeReader* in, ActorLife* life) {
  std::vector<std::string> items;
  in->list("timers", &items);
  std::vector<int64_t> v;
  for (const std::string& item : items) {
    if (!numbers(item, 2, &v) || v[1] < 0) return in->fail("timers", "'" + item + "' is no timer");
    for (const FrozenTimer& other : life->timers) {
      if (other.tag == v[0]) return in->fail("timers", "tag " + std::to_string(v[0]) + " is there twice");
    }
    life->timers.push_back({v[0], static_cast<uint64_t>(v[1])});
  }
}

void read_generates(AttributeReader* in, GeneratesState* state) {
  std::vector<std::string> items;
  in->list("generates", &items);
  std::vector<int64_t> v;
  for (const std::string& item : items) {
    if (!numbers(item, 6, &v) || v[1] < 0 || v[2] < 1 || v[2] > kMostInt || v[4] < 0 || v[5] < 0) {
      return in->fail("generates", "'" + item + "' is no generate");
    }
    state->running.push_back(
        {v[0], static_cast<uint64_t>(v[1]), static_cast<int32_t>(v[2]), v[3] != 0, v[4], v[5]});
  }
  int64_t turn = 0;
  in->i64("generates_turn", &turn, 0, kMost);
  state->turn = static_cast<size_t>(turn);
  in->u64("generates_serial", &state->last_serial);
  items.clear();
  in->list("generates_ended", &items);
  for (const std::string& item : items) {
    const size_t comma = item.rfind(',');
    std::string message;
    if (comma == std::string::npos || !numbers(item.substr(0, comma), 4, &v) || v[2] < 0 ||
        v[2] > static_cast<int32_t>(DoneReason::kError) || item.compare(comma + 1, 1, "=") != 0 ||
        !unescape(std::string_view(item).substr(comma + 2), &message)) {
      return in->fail("generates_ended", "'" + item + "' is no ended generate");
    }
    state->ended.push_back(
        {v[0], static_cast<int32_t>(v[1]), static_cast<DoneReason>(v[2]), v[3], std::move(message)});
  }
}

void read_forks(AttributeReader* in, ActorLife* life) {
  std::vector<std::string> items;
  in->list("forks", &items);
  std::vector<int64_t> v;
  for (const std::string& item : items) {
    if (!numbers(item, 2, &v)) return in->fail("forks", "'" + item + "' is no fork");
    life->forks.push_back({v[0], v[1]});
  }
}

void read_slots(AttributeReader* in, ActorLife* life) {
  std::vector<std::string> items;
  in->list("session_generations", &items);
  if (items.size() > Sessions::kMaxSlots) return in->fail("session_generations", "there are too many");
  for (const std::string& item : items) {
    uint64_t generation = 0;
    if (!parse_u64(item, &generation) || generation >= 1u << (31 - Sessions::kSlotBits)) {
      return in->fail("session_generations", "'" + item + "' is no generation");
    }
    life->slots.emplace_back();
    life->slots.back().generation = static_cast<uint32_t>(generation);
  }
}

void read_setup(AttributeReader* in, ActorSetup* setup) {
  for (const LimitField& field : limit_fields()) {
    int64_t value = 0;
    const std::string key = std::string("limit_") + field.name;
    in->i64(key.c_str(), &value, 0, kMost);
    field.set(&setup->limits, value);
  }
  read_texts(in, "args", &setup->args);
  std::vector<std::string> texts;
  read_texts(in, "env", &texts);
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) return in->fail("env", "'" + text + "' is no NAME=VALUE");
    setup->env.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  texts.clear();
  read_texts(in, "folders", &texts);
  for (const std::string& text : texts) {
    if (text.size() < 2 || (text[0] != 'r' && text[0] != 'w')) {
      return in->fail("folders", "'" + text + "' is no grant");
    }
    setup->folders.push_back({text.substr(1), text[0] == 'w'});
  }
}

Status read_actor_section(const StoredSection& section, FrozenActor* frozen) {
  AttributeReader in(section.name, section.attributes);
  ActorLife& life = frozen->life;
  in.text("name", &frozen->name);
  in.u64("epoch", &life.epoch);
  in.u64("sequence", &life.sequence);
  in.u64("handlers_run", &life.handlers_run);
  in.u64("messages_dropped", &life.messages_dropped);
  in.flag("started", &life.started);
  in.i64("tokens_appended", &life.tokens_appended, 0, kMost / 2);
  in.i64("tokens_generated", &life.tokens_generated, 0, kMost / 2);
  in.text("last_error", &life.last_error);
  in.u64("random_seed", &life.draws.seed);
  in.u64("random_words", &life.draws.random_words);
  in.u64("clock_reads", &life.draws.clock_reads);
  in.u64("clock_realtime_ns", &life.draws.last_realtime_ns);
  in.u64("clock_monotonic_ns", &life.draws.last_monotonic_ns);
  read_timers(&in, &life);
  read_generates(&in, &life.generates);
  read_forks(&in, &life);
  read_slots(&in, &life);
  read_setup(&in, &frozen->setup);
  DW_RETURN_IF_ERROR(in.status());
  if (section.find("config") != nullptr) {
    DW_ASSIGN_OR_RETURN(frozen->setup.config, values_of<uint8_t>(section, "config", DType::kU8, 1));
  }
  return Status::ok();
}

Status read_mailbox(const StoredSection& section, ActorLife* life) {
  DW_ASSIGN_OR_RETURN(const std::vector<uint64_t> table,
                      values_of<uint64_t>(section, "table", DType::kU64, 4));
  std::vector<uint8_t> bytes;
  if (section.find("bytes") != nullptr) {
    DW_ASSIGN_OR_RETURN(bytes, values_of<uint8_t>(section, "bytes", DType::kU8, 1));
  }
  size_t at = 0;
  for (size_t i = 0; i + 3 < table.size(); i += 4) {
    const uint64_t length = table[i + 3];
    if (length > bytes.size() - at)
      return bad(section, "message " + std::to_string(i / 4) + " ends past the bytes");
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    life->mailbox.push_back(
        {table[i], table[i + 1], table[i + 2], {begin, begin + static_cast<std::ptrdiff_t>(length)}});
    at += length;
  }
  return at == bytes.size() ? Status::ok() : bad(section, "bytes follow the last message");
}

Status read_globals(const StoredSection& section, FrozenActor* frozen) {
  DW_ASSIGN_OR_RETURN(const std::vector<uint64_t> v, values_of<uint64_t>(section, "values", DType::kU64, 4));
  for (size_t i = 0; i + 3 < v.size(); i += 4) {
    if (v[i] > std::numeric_limits<uint32_t>::max() ||
        v[i + 1] > static_cast<uint64_t>(wasm::GlobalType::kV128)) {
      return bad(section, "global " + std::to_string(i / 4) + " has no such index or type");
    }
    frozen->globals.push_back(
        {static_cast<uint32_t>(v[i]), static_cast<wasm::GlobalType>(v[i + 1]), v[i + 2], v[i + 3]});
  }
  return Status::ok();
}

Status read_memory(const std::shared_ptr<const StoredSnapshot>& stored, const StoredSection& section,
                   FrozenActor* frozen) {
  AttributeReader in(section.name, section.attributes);
  wasm::MemoryImage& image = frozen->memory.image;
  in.u64("memory_bytes", &image.memory_bytes);
  DW_RETURN_IF_ERROR(in.status());
  if (image.memory_bytes == 0) return Status::ok();
  const StoredTensor* pages = section.find("pages");
  if (pages == nullptr || pages->dtype != DType::kU8 || pages->shape.size() != 1 ||
      pages->piece_bytes != kMemoryPieceBytes ||
      static_cast<uint64_t>(pages->shape[0]) != image.memory_bytes ||
      image.memory_bytes % kMemoryPieceBytes != 0) {
    return bad(section,
               "tensor 'pages' is not the memory of " + std::to_string(image.memory_bytes) + " bytes");
  }
  const auto pieces = stored->pieces(*pages);
  image.pieces.assign(pieces.begin(), pieces.end());
  image.owner = stored;
  const auto digests = stored->digests(*pages);
  frozen->image_digests =
      std::make_shared<const std::vector<snapshot::Digest>>(digests.begin(), digests.end());
  return Status::ok();
}

void read_sampling(AttributeReader* in, sampler::SamplerParams* p) {
  in->f32("temperature", &p->temperature);
  in->i32("top_k", &p->top_k, 0, kMostInt);
  in->f32("top_p", &p->top_p);
  in->f32("min_p", &p->min_p);
  in->f32("repetition_penalty", &p->repetition_penalty);
  in->f32("presence_penalty", &p->presence_penalty);
  in->f32("frequency_penalty", &p->frequency_penalty);
  in->i32("penalty_last_n", &p->penalty_last_n, -1, kMostInt);
  in->u64("seed", &p->seed);
  in->u64("stream", &p->stream);
  std::vector<std::string> items;
  in->list("logit_bias", &items);
  for (const std::string& item : items) {
    const std::vector<std::string> parts = split(item, ',');
    int64_t id = 0;
    float value = 0;
    if (parts.size() != 2 || !parse_i64(parts[0], &id) || id < 0 || id > kMostInt ||
        !parse_f32(parts[1], &value)) {
      return in->fail("logit_bias", "'" + item + "' is no bias");
    }
    p->logit_bias.emplace_back(static_cast<int32_t>(id), value);
  }
}

Result<DType> kv_type(const StoredSection& section, const StoredTensor& kv) {
  if (kv.dtype == DType::kF16 || kv.dtype == DType::kF32) return kv.dtype;
  return bad(section, "tensor 'kv' is neither F16 nor F32");
}

// The KV as one piece of a file for every block.
Status read_kv(const std::shared_ptr<const StoredSnapshot>& stored, const StoredSection& section,
               engine::FrozenSession* session, std::vector<snapshot::Digest>* digests) {
  const StoredTensor* kv = section.find("kv");
  if (kv == nullptr) return Status::ok();
  DW_ASSIGN_OR_RETURN(session->kv_shape.dtype, kv_type(section, *kv));
  const auto element = static_cast<int64_t>(dtype_size(kv->dtype));
  if (kv->shape.size() != 2 || kv->piece_bytes == 0 || kv->piece_bytes % snapshot::kUnitBytes != 0 ||
      kv->shape[1] != static_cast<int64_t>(kv->piece_bytes) / element) {
    return bad(section, "tensor 'kv' is not made of whole blocks");
  }
  if (session->block_bytes != static_cast<int64_t>(kv->piece_bytes)) {
    return bad(section, "tensor 'kv' has pieces of " + std::to_string(kv->piece_bytes) +
                            " bytes, blocks have " + std::to_string(session->block_bytes));
  }
  for (const region::FileImage& run : stored->pieces(*kv)) {
    for (size_t at = 0; at < run.length; at += kv->piece_bytes) {
      session->kv_files.push_back({run.fd, run.fd < 0 ? 0 : run.offset + at, kv->piece_bytes});
    }
  }
  const auto known = stored->digests(*kv);
  digests->assign(known.begin(), known.end());
  session->kv_owner = stored;
  return Status::ok();
}

// The session agrees with itself and with what the snapshot says of its KV.
Status check_session(const StoredSection& section, const Session& slot, const engine::FrozenSession& session,
                     const std::string& geometry) {
  const auto length = static_cast<int64_t>(session.tokens.size());
  if (slot.capacity != session.max_tokens) return bad(section, "'capacity' and 'max_tokens' differ");
  if (length > session.max_tokens || session.computed > length) {
    return bad(section, "it has " + std::to_string(length) + " tokens, " + std::to_string(session.computed) +
                            " computed, and room for " + std::to_string(session.max_tokens));
  }
  if (static_cast<int64_t>(session.kv_files.size()) != kv::blocks_for(session.computed)) {
    return bad(section, "it has " + std::to_string(session.kv_files.size()) + " KV blocks for " +
                            std::to_string(session.computed) + " computed tokens");
  }
  DW_RETURN_IF_ERROR(
      sampler::validate(session.sampling, kMostVocabulary).with_context("section '" + section.name + "'"));
  const engine::KvShape& shape = session.kv_shape;
  const auto layout = kv::KvLayout::create(shape.layers, shape.kv_heads, shape.head_dim, shape.dtype);
  if (!layout.is_ok()) return bad(section, layout.status().message());
  // Without KV the type of its elements is not told.
  const bool told = !session.kv_files.empty();
  if (told && (layout->geometry() != geometry || layout->block_bytes() != session.block_bytes)) {
    return bad(section, "its KV is '" + layout->geometry() + "', the snapshot's is '" + geometry + "'");
  }
  return Status::ok();
}

Status read_session(const std::shared_ptr<const StoredSnapshot>& stored, const StoredSection& section,
                    FrozenActor* frozen) {
  uint64_t index = 0;
  if (!parse_u64(std::string_view(section.name).substr(std::strlen(names::kSession)), &index) ||
      index >= frozen->life.slots.size()) {
    return bad(section, "there is no such slot");
  }
  Session& slot = frozen->life.slots[index];
  if (slot.handle != 0) return bad(section, "it is there twice");
  AttributeReader in(section.name, section.attributes);
  engine::FrozenSession session;
  session.identity = frozen->identity.model;
  in.i32("handle", &slot.handle, 1, kMostInt);
  in.i64("capacity", &slot.capacity, 1, kMost);
  in.flag("generating", &slot.generating);
  in.flag("masked", &slot.masked);
  in.i64("max_tokens", &session.max_tokens, 1, kMost);
  in.i64("computed", &session.computed, 0, kMost);
  in.flag("has_logits", &session.has_logits);
  in.i64("layers", &session.kv_shape.layers, 0, kMostInt);
  in.i64("kv_heads", &session.kv_shape.kv_heads, 0, kMostInt);
  in.i64("head_dim", &session.kv_shape.head_dim, 0, kMostInt);
  in.text("rope", &session.identity.rope);
  in.i64("block_bytes", &session.block_bytes, 1, kMost);
  read_sampling(&in, &session.sampling);
  const int32_t expected =
      static_cast<int32_t>(slot.generation << Sessions::kSlotBits) | static_cast<int32_t>(index + 1);
  if (in.status().is_ok() && slot.handle != expected)
    in.fail("handle", "it is not the slot's and generation's");
  DW_RETURN_IF_ERROR(in.status());
  if (section.find("tokens") != nullptr) {
    DW_ASSIGN_OR_RETURN(session.tokens, values_of<int32_t>(section, "tokens", DType::kI32, 1));
  }
  if (session.has_logits) {
    DW_ASSIGN_OR_RETURN(session.logits, values_of<float>(section, "logits", DType::kF32, 1));
  }
  if (slot.masked) {
    DW_ASSIGN_OR_RETURN(slot.mask, values_of<uint64_t>(section, "mask", DType::kU64, 1));
  }
  frozen->kv_digests.emplace_back();
  DW_RETURN_IF_ERROR(read_kv(stored, section, &session, &frozen->kv_digests.back()));
  DW_RETURN_IF_ERROR(check_session(section, slot, session, frozen->identity.model.kv_geometry));
  frozen->sessions.push_back(std::move(session));
  return Status::ok();
}

// Every generate has its session, and every generating session its generate.
Status check_generates(const ActorLife& life) {
  size_t generating = 0;
  for (const Session& slot : life.slots) generating += slot.handle != 0 && slot.generating;
  for (const Generate& g : life.generates.running) {
    const bool found = std::any_of(life.slots.begin(), life.slots.end(),
                                   [&](const Session& s) { return s.handle == g.session && s.generating; });
    if (!found) {
      return invalid_argument("section 'actor': generate " + std::to_string(g.tag) + " has no session");
    }
  }
  if (generating == life.generates.running.size()) return Status::ok();
  return invalid_argument("section 'actor': sessions that generate and generates do not agree");
}

}  // namespace

Result<std::shared_ptr<FrozenActor>> read_actor(std::shared_ptr<const StoredSnapshot> stored) {
  auto frozen = std::make_shared<FrozenActor>();
  frozen->identity = identity_from(stored->identity());
  frozen->parent = stored->hash();
  const StoredSection* actor = stored->find(names::kActor);
  if (actor == nullptr) return invalid_argument("it holds no actor: section 'actor' is missing");
  DW_RETURN_IF_ERROR(read_actor_section(*actor, frozen.get()));
  uint64_t last_slot = 0;
  for (const StoredSection& section : stored->sections()) {
    Status read;
    if (section.name == names::kMailbox) {
      read = read_mailbox(section, &frozen->life);
    } else if (section.name == names::kGlobals) {
      read = read_globals(section, frozen.get());
    } else if (section.name == names::kMemory) {
      read = read_memory(stored, section, frozen.get());
    } else if (section.name.starts_with(names::kSession)) {
      read = read_session(stored, section, frozen.get());
      uint64_t slot = 0;
      parse_u64(std::string_view(section.name).substr(std::strlen(names::kSession)), &slot);
      if (read.is_ok() && slot < last_slot) read = bad(section, "sessions are not in order");
      last_slot = slot;
    } else if (section.name != names::kActor && section.name != names::kModule) {
      read = failed_precondition("section '" + section.name + "' (" + section.kind +
                                 ") is unknown here: its state would be lost");
    }
    DW_RETURN_IF_ERROR(read);
  }
  DW_RETURN_IF_ERROR(check_generates(frozen->life));
  return frozen;
}

Result<std::vector<uint8_t>> module_code(const StoredSnapshot& stored) {
  const StoredSection* section = stored.find(names::kModule);
  const StoredTensor* code = section == nullptr ? nullptr : section->find("code");
  if (code == nullptr) return not_found("the snapshot does not hold its module");
  if (code->dtype != DType::kU8 || code->shape.size() != 1 || code->piece_bytes == 0) {
    return bad(*section, "tensor 'code' is not bytes in pieces");
  }
  constexpr int64_t kMostCode = int64_t{256} << 20;
  if (code->shape[0] > kMostCode) return bad(*section, "the module is too large");
  std::vector<uint8_t> bytes(static_cast<size_t>(code->shape[0]));
  DW_RETURN_IF_ERROR(stored.read(*code, 0, bytes));
  return bytes;
}

}  // namespace driftwood::actor
