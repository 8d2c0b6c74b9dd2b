//! Broken modules must be refused, never panic; and a valid one must stay valid.

use super::prepare;
use wasmparser::{Validator, WasmFeatures};

const SEEDS: [&str; 4] = [
    r#"(module (memory (export "m") 1 4) (global (mut i32) (i32.const 9)) (data (i32.const 8) "hello") (data "p")
        (func $s (i32.store (i32.const 0) (i32.const 1))) (start $s))"#,
    r#"(module (import "e" "g" (global $g i32)) (import "e" "f" (func $f (param i32))) (memory 1)
        (table 2 funcref) (elem (i32.const 0) $f $h) (elem funcref (ref.func $h))
        (data (i32.add (global.get $g) (i32.const 4)) "xyz")
        (func $h (param i32) (call_indirect (param i32) (local.get 0) (i32.const 1)) (data.drop 0))
        (export "h" (func $h)))"#,
    r#"(module (rec (type $a (struct (field (mut i32)))) (type $b (func (result (ref $a))))) (tag)
        (memory i64 1) (global (mut i64) (i64.const 1)) (data (i64.const 3) "abc")
        (func (type $b) (struct.new $a (i32.const 1))))"#,
    r#"(module (memory 1) (memory 1) (data (memory 1) (i32.const 1) "a") (data (i32.const 2) "")
        (func (export "x") (result v128) (v128.const i64x2 1 2)) (@custom "c" (after code) "zzz"))"#,
];
const ROUNDS: u64 = 2_500;

/// splitmix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn mutate(wasm: &mut Vec<u8>, random: &mut Random) {
    // One small change is the most likely to leave a module that is odd, yet valid.
    let changes = if random.below(4) > 0 { 1 } else { 1 + random.below(4) };
    for _ in 0..changes {
        let at = random.below(wasm.len());
        match random.below(10) {
            0..=3 => wasm[at] ^= 1 << random.below(8),
            4 => wasm[at] = wasm[at].wrapping_add(1),
            5 => wasm[at] = random.next() as u8,
            6 => wasm.insert(at, random.next() as u8),
            7 if wasm.len() > 8 => {
                wasm.remove(at);
            }
            8 => wasm.truncate(at.max(4)),
            _ => {
                let piece: Vec<u8> = wasm[at..wasm.len().min(at + 1 + random.below(16))].to_vec();
                let to = random.below(wasm.len());
                wasm.splice(to..to, piece);
            }
        }
    }
}

#[test]
fn mutated_modules() {
    let seeds: Vec<Vec<u8>> = SEEDS.iter().map(|s| wat::parse_str(s).unwrap()).collect();
    let valid = |wasm: &[u8]| Validator::new_with_features(WasmFeatures::all()).validate_all(wasm).map(|_| ());
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        let mut random = Random(round);
        let mut wasm = seeds[random.below(seeds.len())].clone();
        mutate(&mut wasm, &mut random);
        match prepare(&wasm) {
            Ok(p) => {
                accepted += 1;
                valid(&p.wasm).unwrap_or_else(|e| panic!("round {round}: the output is invalid: {e}"));
            }
            Err(e) => {
                refused += 1;
                assert_ne!(e.code, crate::boundary::INTERNAL, "round {round}: {}", e.message);
            }
        }
    }
    // Otherwise the test would show little.
    assert!(accepted > 200 && refused > 200, "{accepted} accepted, {refused} refused");
}
