//! What the host is told about a module.

use super::scan::{Memory, Scan};
use super::{global_export, MEMORY};
use serde_json::{json, Value};
use wasmparser::{ExternalKind, ValType};

const OS_PAGE_LOG2: u32 = 16;

pub fn json(scan: &Scan, wasm: &[u8]) -> Value {
    let globals: Vec<Value> = scan
        .state_globals()
        .map(|(i, ty)| json!({"index": i, "type": ty.content_type.to_string(), "export": global_export(i)}))
        .collect();
    let imports: Vec<Value> = scan
        .function_imports
        .iter()
        .map(|i| with_signature(json!({"module": i.module, "name": i.name}), scan, i.type_index))
        .collect();
    json!({
        "snapshot_blockers": blockers(scan),
        "notes": notes(scan),
        "globals": globals,
        "memory": scan.memories.first().map(memory),
        "memories": scan.memories.len(),
        "tables": scan.tables,
        "data_segments": scan.segments.len(),
        "data_bytes": scan.active_segments().map(|(_, _, data)| data.len()).sum::<usize>(),
        "had_start": scan.start.is_some(),
        "imports": imports,
        "exports": exports(scan),
        "module_hash": blake3::hash(wasm).to_hex().as_str(),
    })
}

fn memory(m: &Memory) -> Value {
    json!({
        "min": m.ty.initial,
        "max": m.ty.maximum,
        "shared": m.ty.shared,
        "memory64": m.ty.memory64,
        "page_size": 1u64 << m.ty.page_size_log2.unwrap_or(OS_PAGE_LOG2),
        "imported": m.imported,
        "export": MEMORY,
    })
}

fn with_signature(mut object: Value, scan: &Scan, type_index: u32) -> Value {
    if let Some(Some(ty)) = scan.types.get(type_index as usize) {
        let names = |types: &[ValType]| types.iter().map(ToString::to_string).collect::<Vec<_>>();
        object["params"] = names(ty.params()).into();
        object["results"] = names(ty.results()).into();
    }
    object
}

fn exports(scan: &Scan) -> Vec<Value> {
    let one = |e: &wasmparser::Export| {
        let kind = match e.kind {
            ExternalKind::Func | ExternalKind::FuncExact => "func",
            ExternalKind::Table => "table",
            ExternalKind::Memory => "memory",
            ExternalKind::Global => "global",
            ExternalKind::Tag => "tag",
        };
        let object = json!({"name": e.name, "kind": kind, "index": e.index});
        match (kind, scan.functions.get(e.index as usize)) {
            ("func", Some(type_index)) => with_signature(object, scan, *type_index),
            _ => object,
        }
    };
    scan.exports.iter().map(one).collect()
}

fn blockers(scan: &Scan) -> Vec<String> {
    let mut why = Vec::new();
    for i in &scan.state_imports {
        why.push(format!("imports the {} {}.{}: its state is outside of the module", i.what, i.module, i.name));
    }
    for (index, ty) in scan.state_globals() {
        if let ValType::Ref(r) = ty.content_type {
            why.push(format!("mutable global {index} holds a reference ({r})"));
        }
    }
    memory_blockers(scan, &mut why);
    let census = &scan.census;
    for (name, times) in &census.table_writes {
        why.push(format!("{name} ({times} times): tables change at run time"));
    }
    let passive_element = |i: &u32| scan.passive_elements.get(*i as usize) == Some(&true);
    for index in census.dropped_elements.iter().filter(|i| passive_element(i)) {
        why.push(format!("elem.drop of the passive element segment {index}: whether it ran cannot be seen"));
    }
    let passive_data = |i: &u32| scan.segments.get(*i as usize).is_some_and(|s| s.active.is_none());
    for index in census.dropped_data.iter().filter(|i| passive_data(i)) {
        why.push(format!("data.drop of the passive data segment {index}: whether it ran cannot be seen"));
    }
    for (name, times) in &census.gc {
        why.push(format!("{name} ({times} times): objects live in the garbage-collected heap"));
    }
    if census.stack_switches > 0 {
        why.push(format!("stack switching ({} times): suspended stacks cannot be saved", census.stack_switches));
    }
    why
}

fn memory_blockers(scan: &Scan, why: &mut Vec<String>) {
    if scan.memories.len() > 1 {
        why.push(format!("{} memories; one can be saved", scan.memories.len()));
    }
    for (index, m) in scan.memories.iter().enumerate() {
        if m.ty.shared {
            why.push(format!("memory {index} is shared: other threads may write to it during a snapshot"));
        }
        if let Some(log2) = m.ty.page_size_log2.filter(|log2| *log2 < OS_PAGE_LOG2) {
            why.push(format!("memory {index} has pages of {} bytes: it does not end on an OS page", 1u64 << log2));
        }
    }
}

fn notes(scan: &Scan) -> Vec<String> {
    let mut notes = Vec::new();
    if scan.memories.is_empty() {
        notes.push("the module has no memory".to_string());
    }
    if scan.memories.iter().any(|m| m.ty.memory64) {
        notes.push("64-bit memory: bounds checks stay in the code".to_string());
    }
    for e in scan.exports.iter().filter(|e| e.kind == ExternalKind::Table) {
        notes.push(format!("the table '{}' is exported: the host must not change it", e.name));
    }
    if scan.census.memory_inits > 0 {
        let times = scan.census.memory_inits;
        notes.push(format!("memory.init ({times} times): passive data can be copied again after a restore"));
    }
    if scan.census.atomic_waits > 0 {
        notes.push(format!("memory.atomic.wait ({} times): it can block the host", scan.census.atomic_waits));
    }
    notes
}
