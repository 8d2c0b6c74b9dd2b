//! The one Rust crate of Driftwood: a static library behind a C ABI.
//!
//! `include/dw_bridge.h` is the contract and documents every function. The C++ side sees only that header
//! and Wasmtime's own. No policy lives here: this crate turns bytes into bytes.
//!
//! One folder or file per concept; each has the extern functions that belong to it:
//!  * `boundary`  what crosses: statuses, buffers, slices, and the stop for panics
//!  * `hash`      BLAKE3
//!  * `tokenizer` text to ids and ids to bytes
//!  * `template`  chat templates
//!  * `module`    makes a Wasm module snapshottable

mod boundary;
mod hash;
mod module;
mod template;
mod tokenizer;

// Pulls Wasmtime's C API into the archive; its symbols are exported as they are.
pub extern crate wasmtime_c_api;

use std::ffi::{c_char, CStr};

/// Name and version of the bridge and of the libraries whose version can change a result.
const VERSION: &CStr = c"driftwood-bridge 0.1.0 (wasmtime 48.0.8)";

#[no_mangle]
pub extern "C" fn dwb_version() -> *const c_char {
    VERSION.as_ptr()
}
