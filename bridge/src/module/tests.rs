//! The rewritten module behaves as the original: both are run.

use super::{prepare, Prepared};
use crate::boundary::{INVALID_ARGUMENT, UNSUPPORTED};
use wasmparser::{Validator, WasmFeatures};
use wasmtime::{Config, Engine, Extern, Instance, Module, Store, Val};

fn prepared(wat: &str) -> Prepared {
    let p = prepare(&wat::parse_str(wat).expect("the test's text is Wasm")).unwrap_or_else(|e| panic!("{e:?}\n{wat}"));
    Validator::new_with_features(WasmFeatures::all()).validate_all(&p.wasm).expect("the output is valid");
    p
}

fn blockers(wat: &str) -> Vec<String> {
    let report = prepared(wat).report;
    let list = report["snapshot_blockers"].as_array().unwrap();
    list.iter().map(|b| b.as_str().unwrap().to_string()).collect()
}

fn blocked(wat: &str, why: &str) {
    let all = blockers(wat);
    assert!(all.iter().any(|b| b.contains(why)), "{why} is not among {all:?}");
}

struct Running {
    store: Store<()>,
    instance: Instance,
}

impl Running {
    fn new(wasm: &[u8], imports: &[Val]) -> Result<Self, String> {
        let mut config = Config::new();
        config.wasm_memory64(true).wasm_multi_memory(true).wasm_extended_const(true);
        let engine = Engine::new(&config).map_err(|e| e.to_string())?;
        let module = Module::new(&engine, wasm).map_err(|e| format!("{e:?}"))?;
        let mut store = Store::new(&engine, ());
        let externs: Vec<Extern> = module
            .imports()
            .zip(imports)
            .map(|(i, v)| {
                let ty = i.ty().global().expect("tests import globals only").clone();
                wasmtime::Global::new(&mut store, ty, v.clone()).unwrap().into()
            })
            .collect();
        let instance = Instance::new(&mut store, &module, &externs).map_err(|e| format!("{e:?}"))?;
        Ok(Running { store, instance })
    }

    fn call(&mut self, name: &str) -> Result<(), String> {
        let f = self.instance.get_typed_func::<(), ()>(&mut self.store, name).map_err(|e| e.to_string())?;
        f.call(&mut self.store, ()).map_err(|e| format!("{e:?}"))
    }

    fn memory(&mut self, name: &str) -> Vec<u8> {
        self.instance.get_memory(&mut self.store, name).expect("a memory").data(&self.store).to_vec()
    }
}

/// The original after instantiation and the rewritten one after `__dw_init` have the same memory.
fn same_start(wat: &str, imports: &[Val]) -> Running {
    let original = wat::parse_str(wat).unwrap();
    let rewritten = prepared(wat).wasm;
    let mut was = Running::new(&original, imports).expect("the original starts");
    let mut is = Running::new(&rewritten, imports).expect("the rewritten one starts");
    assert!(is.memory("__dw_memory").iter().all(|b| *b == 0), "data came before __dw_init");
    is.call("__dw_init").expect("__dw_init runs");
    assert_eq!(was.memory("m"), is.memory("m"));
    is
}

#[test]
fn data_start_and_globals() {
    let wat = r#"(module
        (memory (export "m") 1 4)
        (global $sp (mut i32) (i32.const 1024))
        (global $c i64 (i64.const 7))
        (global (export "x") (mut f64) (f64.const 2))
        (data (i32.const 8) "hello") (data "passive") (data (i32.const 10) "XY")
        (func $start (i32.store (i32.const 0) (i32.load8_u (i32.const 10))))
        (func (export "run") (param i32 i64) (result f32) (f32.const 1))
        (start $start))"#;
    let mut is = same_start(wat, &[]);
    assert_eq!(&is.memory("m")[..13], b"X\0\0\0\0\0\0\0heXYo");
    // A second time must fail: the segments are dropped.
    assert!(is.call("__dw_init").unwrap_err().contains("out of bounds"));
    let sp = is.instance.get_global(&mut is.store, "__dw_global_0").unwrap();
    assert_eq!(sp.get(&mut is.store).unwrap_i32(), 1024);

    let report = prepared(wat).report;
    assert_eq!(report["snapshot_blockers"], serde_json::json!([]));
    assert_eq!(report["globals"], serde_json::json!([
        {"index": 0, "type": "i32", "export": "__dw_global_0"},
        {"index": 2, "type": "f64", "export": "__dw_global_2"}]));
    assert_eq!(report["memory"], serde_json::json!({"min": 1, "max": 4, "shared": false, "memory64": false,
        "page_size": 65536, "imported": false, "export": "__dw_memory"}));
    assert_eq!((&report["had_start"], &report["data_segments"], &report["data_bytes"]),
        (&true.into(), &3.into(), &7.into()));
    assert_eq!(report["exports"][2], serde_json::json!({"name": "run", "kind": "func", "index": 1,
        "params": ["i32", "i64"], "results": ["f32"]}));
}

#[test]
fn offsets_of_every_kind() {
    same_start(
        r#"(module (import "e" "base" (global $base i32)) (memory (export "m") 1)
            (data (global.get $base) "a")
            (data (i32.add (global.get $base) (i32.mul (i32.const 3) (i32.const 5))) "b")
            (data (i32.const 65536) ""))"#,
        &[Val::I32(100)],
    );
    same_start(r#"(module (memory (export "m") i64 1) (data (i64.const 40000) "sixty-four"))"#, &[]);
    let two = r#"(module (memory (export "n") 1) (memory (export "m") 1) (data (memory 1) (i32.const 3) "x"))"#;
    same_start(two, &[]);
    blocked(two, "2 memories");
}

#[test]
fn segments_out_of_bounds_trap_in_init() {
    for data in [r#"(i32.const 65535) "ab""#, r#"(i32.const 65537) """#, r#"(i32.const -1) "a""#] {
        let wat = format!(r#"(module (memory (export "m") 1) (data (i32.const 0) "first") (data {data}))"#);
        assert!(Running::new(&wat::parse_str(&wat).unwrap(), &[]).is_err());
        let mut is = Running::new(&prepared(&wat).wasm, &[]).unwrap();
        assert!(is.call("__dw_init").unwrap_err().contains("out of bounds"));
        assert_eq!(&is.memory("m")[..5], b"first");
    }
}

#[test]
fn a_restore_drops_and_writes_nothing() {
    let wat = r#"(module (memory (export "m") 1) (data (i32.const 4) "abc")
        (func (export "again") (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 3)))
        (func (export "again0") (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 0)))
        (func $start unreachable) (start $start))"#;
    let mut is = Running::new(&prepared(wat).wasm, &[]).unwrap();
    is.call("__dw_drop").unwrap();
    assert!(is.memory("m").iter().all(|b| *b == 0));
    assert!(is.call("again").is_err());
    is.call("again0").unwrap();
    is.call("__dw_drop").unwrap();
}

#[test]
fn modules_that_lack_sections() {
    for wat in ["(module)", "(module (memory 1))", r#"(module (data "p"))"#, "(module (func))",
        r#"(module (import "a" "f" (func $f)) (start $f))"#, "(module (type (func (param i32))))",
        r#"(module (memory 1) (data (i32.const 0) "a") (@custom "late" (after last) "x"))"#,
        "(module (rec (type (struct)) (type $f (func (result i32)))) (func (type $f) i32.const 1))",
        "(module (tag) (global i32 (i32.const 0)) (table 1 funcref) (elem (i32.const 0) func 0) (func))"]
    {
        let p = prepared(wat);
        assert_eq!(p.report["snapshot_blockers"], serde_json::json!([]), "{wat}");
    }
    assert_eq!(prepared("(module)").report["memory"], serde_json::Value::Null);
    let report = prepared(r#"(module (import "a" "f" (func (param i32) (result i64))))"#).report;
    assert_eq!(report["imports"], serde_json::json!([
        {"module": "a", "name": "f", "params": ["i32"], "results": ["i64"]}]));
}

#[test]
fn code_and_custom_sections_are_copied() {
    let wat = r#"(module (memory 1) (data (i32.const 1) "d")
        (func $named (result i32) i32.const 123456) (@custom "note" (after data) "kept"))"#;
    let original = wat::parse_str(wat).unwrap();
    let rewritten = prepared(wat).wasm;
    let customs = |wasm: &[u8]| -> Vec<(String, Vec<u8>)> {
        let payloads = wasmparser::Parser::new(0).parse_all(wasm).map(Result::unwrap);
        payloads.filter_map(|p| match p {
            wasmparser::Payload::CustomSection(c) => Some((c.name().to_string(), c.data().to_vec())),
            _ => None,
        }).collect()
    };
    assert_eq!(customs(&original).len(), 2);
    assert_eq!(customs(&original), customs(&rewritten));
    let body = [0x41, 0xC0, 0xC4, 0x07, 0x0B];
    assert!(rewritten.windows(body.len()).any(|w| w == body));
}

#[test]
fn what_blocks_a_snapshot() {
    blocked("(module (global (mut externref) (ref.null extern)))", "mutable global 0 holds a reference (externref)");
    blocked(r#"(module (import "e" "g" (global (mut i32))))"#, "imports the mutable global e.g");
    blocked(r#"(module (import "e" "m" (memory 1)))"#, "imports the memory e.m");
    blocked(r#"(module (import "e" "t" (table 1 funcref)))"#, "imports the table e.t");
    blocked("(module (memory 1 1 shared))", "memory 0 is shared");
    blocked("(module (memory 1 (pagesize 1)))", "pages of 1 bytes");
    blocked("(module (table 1 funcref) (func (table.set (i32.const 0) (ref.null func))))", "table.set (1 times)");
    blocked(r#"(module (memory 1) (data "p") (func data.drop 0))"#, "passive data segment 0");
    blocked("(module (elem funcref) (func elem.drop 0))", "passive element segment 0");
    blocked("(module (type $s (struct)) (func (drop (struct.new $s))))", "struct.new");
    // Dropping what instantiation has dropped already changes nothing.
    assert!(blockers(r#"(module (memory 1) (data (i32.const 0) "p") (func data.drop 0))"#).is_empty());
}

#[test]
fn what_is_refused() {
    let refused = |wasm: &[u8], code: i32, why: &str| {
        let e = prepare(wasm).err().expect("must be refused");
        assert!(e.code == code && e.message.contains(why), "{e:?}");
    };
    let parse = |wat: &str| wat::parse_str(wat).unwrap();
    refused(&prepared("(module)").wasm, INVALID_ARGUMENT, "prepared before");
    refused(&parse(r#"(module (func (export "__dw_x")))"#), INVALID_ARGUMENT, "'__dw_x'");
    refused(&parse("(component)"), UNSUPPORTED, "component");
    refused(b"", INVALID_ARGUMENT, "not a Wasm module");
    refused(b"\0asm\x01\0\0\0\x0B\x01\x05", INVALID_ARGUMENT, "offset 0x");
    refused(&vec![0; super::SIZE_LIMIT + 1], INVALID_ARGUMENT, "limit");
}
