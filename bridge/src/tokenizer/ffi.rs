//! The tokenizer's part of dw_bridge.h.

use super::bpe::Spec;
use super::Tokenizer;
use crate::boundary::{infallible, object, out, pointer, release, slice, status, text, Buf, Error, Ids, Result};

#[repr(C)]
pub struct Str {
    data: *const u8,
    len: usize,
}

/// `dwb_bpe_spec`.
#[repr(C)]
pub struct BpeSpec {
    tokens: *const Str,
    n_tokens: usize,
    types: *const i32,
    merges: *const Str,
    n_merges: usize,
    pre: Str,
    bos_id: i64,
    eos_id: i64,
    add_bos: i32,
    add_eos: i32,
    ignore_merges: i32,
}

/// # Safety
/// The pointers of the spec are valid for `'a`.
unsafe fn texts<'a>(data: *const Str, len: usize, what: &str) -> Result<Vec<&'a str>> {
    let one = |(i, s): (usize, &Str)| {
        // The label is made only for an error: there are 100,000s of these.
        unsafe { text(s.data, s.len, "") }.map_err(|e| Error::invalid(format!("{what} {i}: {}", e.message)))
    };
    unsafe { slice(data, len, what)? }.iter().enumerate().map(one).collect()
}

fn id(value: i64, what: &str) -> Result<Option<u32>> {
    match value {
        -1 => Ok(None),
        _ => u32::try_from(value).map(Some).map_err(|_| Error::invalid(format!("{what} is {value}"))),
    }
}

fn flag(value: i32, what: &str) -> Result<Option<bool>> {
    match value {
        -1 => Ok(None),
        0 | 1 => Ok(Some(value == 1)),
        _ => Err(Error::invalid(format!("{what} is {value}, not 0, 1 or -1"))),
    }
}

impl BpeSpec {
    /// # Safety
    /// The pointers are valid for `'a`.
    unsafe fn checked<'a>(&self) -> Result<Spec<'a>> {
        let types = if self.types.is_null() { 0 } else { self.n_tokens };
        unsafe {
            Ok(Spec {
                tokens: texts(self.tokens, self.n_tokens, "token")?,
                types: slice(self.types, types, "types")?,
                merges: texts(self.merges, self.n_merges, "merge")?,
                pre: text(self.pre.data, self.pre.len, "pre")?,
                bos: id(self.bos_id, "bos_id")?,
                eos: id(self.eos_id, "eos_id")?,
                add_bos: flag(self.add_bos, "add_bos")?,
                add_eos: flag(self.add_eos, "add_eos")?,
                ignore_merges: flag(self.ignore_merges, "ignore_merges")?,
            })
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_tokenizer_from_json(json: *const u8, len: usize, err: *mut Buf) -> *mut Tokenizer {
    unsafe { pointer(err, || Tokenizer::from_json(slice(json, len, "json")?)) }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_tokenizer_from_bpe(spec: *const BpeSpec, err: *mut Buf) -> *mut Tokenizer {
    unsafe { pointer(err, || Tokenizer::from_bpe(&object(spec, "spec")?.checked()?)) }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_tokenizer_free(tokenizer: *mut Tokenizer) {
    unsafe { release(tokenizer) }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_tokenizer_encode(
    tokenizer: *const Tokenizer,
    input: *const u8,
    len: usize,
    add_special: i32,
    parse_special: i32,
    ids: *mut Ids,
    err: *mut Buf,
) -> i32 {
    unsafe {
        status(err, || {
            let (tokenizer, ids) = (object(tokenizer, "tokenizer")?, out(ids, "out")?);
            let input = text(input, len, "text")?;
            ids.replace(tokenizer.encode(input, add_special != 0, parse_special != 0)?);
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_tokenizer_decode(
    tokenizer: *const Tokenizer,
    ids: *const u32,
    n: usize,
    skip_special: i32,
    bytes: *mut Buf,
    err: *mut Buf,
) -> i32 {
    unsafe {
        status(err, || {
            let (tokenizer, bytes) = (object(tokenizer, "tokenizer")?, out(bytes, "out")?);
            bytes.replace(tokenizer.decode(slice(ids, n, "ids")?, skip_special != 0)?);
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_tokenizer_token_bytes(
    tokenizer: *const Tokenizer,
    id: u32,
    bytes: *mut Buf,
    is_special: *mut i32,
    err: *mut Buf,
) -> i32 {
    unsafe {
        status(err, || {
            let (tokenizer, bytes) = (object(tokenizer, "tokenizer")?, out(bytes, "out")?);
            let token = tokenizer.table.get(id).ok_or_else(|| Error::invalid(format!("no token has id {id}")))?;
            bytes.set(token.bytes);
            if let Some(is_special) = is_special.as_mut() {
                *is_special = i32::from(token.special);
            }
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_tokenizer_vocab_size(tokenizer: *const Tokenizer) -> usize {
    infallible(0, || unsafe { tokenizer.as_ref() }.map_or(0, |t| t.table.len()))
}

#[no_mangle]
pub unsafe extern "C" fn dwb_tokenizer_token_to_id(
    tokenizer: *const Tokenizer,
    spelling: *const u8,
    len: usize,
    id: *mut u32,
) -> i32 {
    unsafe {
        status(std::ptr::null_mut(), || {
            let (tokenizer, id) = (object(tokenizer, "tokenizer")?, out(id, "id")?);
            let found = tokenizer.token_to_id(text(spelling, len, "text")?);
            *id = found.ok_or_else(|| Error::invalid("no such token"))?;
            Ok(())
        })
    }
}
