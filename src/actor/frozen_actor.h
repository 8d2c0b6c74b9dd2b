// FrozenActor: an actor at a rest point as a value: everything it needs to go on, here or elsewhere.
//
// ActorSystem::freeze makes it, ActorSystem::thaw goes on from it; actor_sections.h turns it into the
// sections of a snapshot and back. Two actors thawed from one value do the same, bit for bit, until their
// inputs differ.
//
// Parts: the guest (module, globals, memory), its sessions as the engine freezes them, and its life: what the
// event loop and the host calls keep. Identity is what must be equal where it goes on.
//
// Ownership: shares memory, KV blocks and files with whoever made it; drop it to give them back. Copying is
// cheap in bytes but not free. Threads: a value.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actor/actor.h"
#include "actor/draws.h"
#include "actor/generates.h"
#include "actor/message.h"
#include "actor/sessions.h"
#include "engine/frozen_session.h"
#include "snapshot/digest.h"
#include "wasm/frozen_state.h"

namespace driftwood::actor {

// A fork that was asked for and made, of which the guest has not been told yet.
struct ForkNotice {
  int64_t tag = 0;
  int64_t child = 0;  // the child's id, 0 in the child itself, or an error code
};

struct FrozenTimer {
  int64_t tag = 0;
  uint64_t remaining_ns = 0;
};

struct FolderGrant {
  std::string guest_path;
  bool writable = false;
};

// What the event loop and the host calls keep of an actor.
struct ActorLife {
  uint64_t epoch = 1;
  uint64_t sequence = 0;
  uint64_t handlers_run = 0;
  uint64_t messages_dropped = 0;
  bool started = false;
  int64_t tokens_appended = 0;
  int64_t tokens_generated = 0;
  std::string last_error;
  DrawState draws;
  std::vector<Message> mailbox;
  std::vector<FrozenTimer> timers;  // in order
  GeneratesState generates;
  std::deque<ForkNotice> forks;
  std::vector<Session> slots;  // engine ids mean nothing here
};

// What it was started with. Limits and grants are requests: whoever thaws decides.
struct ActorSetup {
  ActorLimits limits;
  std::vector<uint8_t> config;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<FolderGrant> folders;
};

// The guest ABI that this program speaks, as identities tell it.
inline constexpr char kAbiText[] = "1";

// Values that must be equal for the actor to go on with the same bits; all but the module's are empty where
// it ran without a model.
struct ActorIdentity {
  std::string module_hash;
  std::string abi;
  engine::SessionIdentity model;
};

struct FrozenActor {
  std::string name;
  ActorIdentity identity;
  ActorSetup setup;
  ActorLife life;
  std::vector<engine::FrozenSession> sessions;  // of the open slots, in their order
  std::shared_ptr<wasm::Module> module;         // null if its code has not been loaded
  std::vector<wasm::GlobalValue> globals;
  wasm::FrozenMemory memory;

  // Where it comes from: the snapshot it was thawed from, and what is known of bytes that came from there.
  std::string parent;
  std::vector<std::vector<snapshot::Digest>> kv_digests;               // of the sessions' kv_files, or empty
  std::shared_ptr<const std::vector<snapshot::Digest>> image_digests;  // of the image's 64 KiB pages, or null
};

// Makes it the fork of that stream: 0 changes nothing, any other re-keys samplers and random numbers, as
// ActorSystem::fork does.
void rekey(FrozenActor* frozen, uint64_t stream);

}  // namespace driftwood::actor
