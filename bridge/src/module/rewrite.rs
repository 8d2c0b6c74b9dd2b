//! Writes the module anew. Every section is copied byte for byte, except those that get something appended
//! (types, functions, exports, code), the data section (active segments turn passive), and the start section
//! (left out). So indices keep their meaning and code is never re-encoded.

use super::scan::Scan;
use super::{global_export, DROP, INIT, MEMORY};
use wasm_encoder::{CodeSection, Encode, ExportKind, ExportSection, Function, SectionId};
use wasmparser::{BinaryReader, Result};

const CUSTOM: u8 = SectionId::Custom as u8;
const TYPE: u8 = SectionId::Type as u8;
const FUNCTION: u8 = SectionId::Function as u8;
const EXPORT: u8 = SectionId::Export as u8;
const START: u8 = SectionId::Start as u8;
const CODE: u8 = SectionId::Code as u8;
const DATA: u8 = SectionId::Data as u8;
const DATA_COUNT: u8 = SectionId::DataCount as u8;

/// The order of sections in a module; custom ones stand anywhere.
const ORDER: [u8; 13] = [
    TYPE,
    SectionId::Import as u8,
    FUNCTION,
    SectionId::Table as u8,
    SectionId::Memory as u8,
    SectionId::Tag as u8,
    SectionId::Global as u8,
    EXPORT,
    START,
    SectionId::Element as u8,
    DATA_COUNT,
    CODE,
    DATA,
];

fn rank(id: u8) -> usize {
    ORDER.iter().position(|o| *o == id).unwrap_or(ORDER.len())
}

/// Items to append to a section: how many, and their bytes.
struct Items {
    count: u32,
    bytes: Vec<u8>,
}

pub fn write(scan: &Scan) -> Result<Vec<u8>> {
    // The sections that must exist in the output, in their order.
    let mut required = vec![TYPE, FUNCTION, EXPORT, CODE];
    if !scan.segments.is_empty() {
        required.insert(3, DATA_COUNT);
    }
    let mut required = required.into_iter().peekable();

    let input: usize = scan.sections.iter().map(|s| s.payload.len() + 6).sum();
    let mut out = Vec::with_capacity(input + 4096);
    out.extend_from_slice(b"\0asm\x01\0\0\0");
    for section in &scan.sections {
        if section.id != CUSTOM {
            while let Some(missing) = required.next_if(|r| rank(*r) < rank(section.id)) {
                emit(&mut out, scan, missing, None)?;
            }
            required.next_if_eq(&section.id);
        }
        emit(&mut out, scan, section.id, Some(section.payload))?;
    }
    for missing in required {
        emit(&mut out, scan, missing, None)?;
    }
    Ok(out)
}

fn emit(out: &mut Vec<u8>, scan: &Scan, id: u8, original: Option<&[u8]>) -> Result<()> {
    let payload = match id {
        START => return Ok(()),
        TYPE => appended(original, &new_type())?,
        FUNCTION => appended(original, &new_functions(scan))?,
        EXPORT => appended(original, &new_exports(scan)?)?,
        CODE => appended(original, &new_bodies(scan)?)?,
        DATA_COUNT => {
            let mut count = Vec::new();
            (scan.segments.len() as u32).encode(&mut count);
            count
        }
        DATA => passive_data(scan),
        _ => {
            section(out, id, original.unwrap_or_default());
            return Ok(());
        }
    };
    section(out, id, &payload);
    Ok(())
}

fn section(out: &mut Vec<u8>, id: u8, payload: &[u8]) {
    out.push(id);
    payload.encode(out);
}

/// A section that is a list, with more items at its end.
fn appended(original: Option<&[u8]>, items: &Items) -> Result<Vec<u8>> {
    let original = original.unwrap_or(&[0]);
    let mut reader = BinaryReader::new(original, 0);
    let count = reader.read_var_u32()?;
    let kept = &original[reader.current_position()..];
    let mut payload = Vec::with_capacity(kept.len() + items.bytes.len() + 5);
    (count + items.count).encode(&mut payload);
    payload.extend_from_slice(kept);
    payload.extend_from_slice(&items.bytes);
    Ok(payload)
}

/// The items of a section that the encoder made: what comes after its size and count.
fn items(section: &impl Encode, count: u32) -> Result<Items> {
    let mut bytes = Vec::new();
    section.encode(&mut bytes);
    let mut reader = BinaryReader::new(&bytes, 0);
    reader.read_var_u32()?;
    reader.read_var_u32()?;
    let start = reader.current_position();
    Ok(Items { count, bytes: bytes.split_off(start) })
}

/// `() -> ()`, whether or not the module has it already: an index that is ours needs no search.
fn new_type() -> Items {
    Items { count: 1, bytes: vec![0x60, 0, 0] }
}

fn new_functions(scan: &Scan) -> Items {
    let type_index = scan.types.len() as u32;
    let mut bytes = Vec::new();
    type_index.encode(&mut bytes);
    type_index.encode(&mut bytes);
    Items { count: 2, bytes }
}

fn new_exports(scan: &Scan) -> Result<Items> {
    let mut exports = ExportSection::new();
    for (index, _) in scan.state_globals() {
        exports.export(&global_export(index), ExportKind::Global, index);
    }
    if !scan.memories.is_empty() {
        exports.export(MEMORY, ExportKind::Memory, 0);
    }
    let functions = scan.functions.len() as u32;
    exports.export(INIT, ExportKind::Func, functions);
    exports.export(DROP, ExportKind::Func, functions + 1);
    items(&exports, exports.len())
}

/// Instantiation copies a segment and drops it, then goes to the next; the start function comes last.
fn new_bodies(scan: &Scan) -> Result<Items> {
    let (mut init, mut drop) = (Function::new([]), Function::new([]));
    for (index, active, data) in scan.active_segments() {
        init.raw(active.offset.iter().copied());
        // Source offset and length are i32 for 64-bit memories, too; only the destination is an address.
        init.instructions().i32_const(0).i32_const(data.len() as i32).memory_init(active.memory, index);
        init.instructions().data_drop(index);
        drop.instructions().data_drop(index);
    }
    if let Some(start) = scan.start {
        init.instructions().call(start);
    }
    init.instructions().end();
    drop.instructions().end();
    let mut code = CodeSection::new();
    code.function(&init).function(&drop);
    items(&code, code.len())
}

fn passive_data(scan: &Scan) -> Vec<u8> {
    const PASSIVE: u8 = 1;
    let size: usize = scan.segments.iter().map(|s| s.data.len() + 6).sum();
    let mut payload = Vec::with_capacity(size + 5);
    (scan.segments.len() as u32).encode(&mut payload);
    for segment in &scan.segments {
        payload.push(PASSIVE);
        segment.data.encode(&mut payload);
    }
    payload
}
