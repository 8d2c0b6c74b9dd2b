//! Makes a core Wasm module snapshottable, and says what stands in the way if it is not.
//!
//! `scan` reads the module once, `census` finds what it does that a snapshot cannot hold, `rewrite` writes it
//! anew by splicing sections, `report` tells the host. `dwb_module_prepare` in dw_bridge.h is the contract.

mod census;
mod report;
mod rewrite;
mod scan;

use crate::boundary::{out, slice, status, Buf, Error, Result};
use wasmparser::{Encoding, Parser, Payload, Validator, WasmFeatures};

const SIZE_LIMIT: usize = 64 << 20;

/// Names in exports that belong to us.
const RESERVED: &str = "__dw_";
const INIT: &str = "__dw_init";
const DROP: &str = "__dw_drop";
const MEMORY: &str = "__dw_memory";

fn global_export(index: u32) -> String {
    format!("__dw_global_{index}")
}

pub struct Prepared {
    pub wasm: Vec<u8>,
    pub report: serde_json::Value,
}

pub fn prepare(wasm: &[u8]) -> Result<Prepared> {
    if wasm.len() > SIZE_LIMIT {
        let size = wasm.len();
        return Err(Error::invalid(format!("the module has {size} bytes, more than the limit of {SIZE_LIMIT}")));
    }
    check_kind(wasm)?;
    // All proposals: which of them may run is the engine's decision, and it validates again.
    Validator::new_with_features(WasmFeatures::all()).validate_all(wasm).map_err(malformed)?;
    let scan = scan::Scan::of(wasm).map_err(malformed)?;
    if let Some(e) = scan.exports.iter().find(|e| e.name.starts_with(RESERVED)) {
        let what = format!("export '{}': names that begin with {RESERVED} are reserved", e.name);
        return Err(Error::invalid(format!("{what} (was this module prepared before?)")));
    }
    check_room(&scan)?;
    let report = report::json(&scan, wasm);
    let wasm = rewrite::write(&scan).map_err(malformed)?;
    Ok(Prepared { wasm, report })
}

/// What is added must not carry the module over a limit of Wasm implementations.
fn check_room(scan: &scan::Scan) -> Result<()> {
    const ITEMS: usize = 1_000_000;
    const BODY_BYTES: usize = 7_654_321;
    /// More than what `__dw_init` takes for a segment beside its offset.
    const SEGMENT_BYTES: usize = 32;
    let exports = scan.exports.len() + scan.state_globals().count() + 3;
    let body: usize = scan.active_segments().map(|(_, a, _)| a.offset.len() + SEGMENT_BYTES).sum();
    let full = [
        ("types", scan.types.len() + 1 > ITEMS),
        ("functions", scan.functions.len() + 2 > ITEMS),
        ("exports", exports > ITEMS),
        ("active data segments", body > BODY_BYTES),
    ];
    match full.iter().find(|(_, over)| *over) {
        Some((what, _)) => Err(Error::unsupported(format!("the module has too many {what} to add to them"))),
        None => Ok(()),
    }
}

fn check_kind(wasm: &[u8]) -> Result<()> {
    if !wasm.starts_with(b"\0asm") {
        return Err(Error::invalid("not a Wasm module: it does not begin with '\\0asm'"));
    }
    match Parser::new(0).parse_all(wasm).next() {
        Some(Ok(Payload::Version { encoding: Encoding::Module, .. })) => Ok(()),
        Some(Ok(_)) => Err(Error::unsupported("this is a Wasm component; only core modules are supported")),
        Some(Err(e)) => Err(malformed(e)),
        None => Err(Error::invalid("an empty Wasm module")),
    }
}

fn malformed(e: wasmparser::Error) -> Error {
    Error::invalid(format!("invalid Wasm module at offset {:#x}: {}", e.offset(), e.message()))
}

#[no_mangle]
pub unsafe extern "C" fn dwb_module_prepare(
    wasm: *const u8,
    len: usize,
    out_wasm: *mut Buf,
    report_json: *mut Buf,
    err: *mut Buf,
) -> i32 {
    unsafe {
        status(err, || {
            let out_wasm = out(out_wasm, "out_wasm")?;
            let prepared = prepare(slice(wasm, len, "wasm")?)?;
            let report = serde_json::to_vec(&prepared.report).map_err(Error::internal)?;
            out_wasm.replace(prepared.wasm);
            if let Some(report_json) = report_json.as_mut() {
                report_json.replace(report);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
