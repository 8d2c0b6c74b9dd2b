//! What crosses the C boundary: statuses, growable buffers, borrowed slices, and the stop for panics.
//!
//! Every extern function of ours runs its body inside `status` or `pointer`: an error becomes a code and a
//! message, a panic becomes `INTERNAL`, and nothing unwinds into C++.

use std::fmt::Display;
use std::panic::{catch_unwind, AssertUnwindSafe};

pub const OK: i32 = 0;
pub const INVALID_ARGUMENT: i32 = 1;
pub const UNSUPPORTED: i32 = 2;
pub const INTERNAL: i32 = 3;

/// An error on its way to C: a `dwb_status` and a text for a person.
#[derive(Debug)]
pub struct Error {
    pub code: i32,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn invalid(message: impl Display) -> Self {
        Error { code: INVALID_ARGUMENT, message: message.to_string() }
    }

    pub fn unsupported(message: impl Display) -> Self {
        Error { code: UNSUPPORTED, message: message.to_string() }
    }

    pub fn internal(message: impl Display) -> Self {
        Error { code: INTERNAL, message: message.to_string() }
    }
}

/// A growable array that C frees with the matching `dwb_*_free`. All zero is the empty one.
/// Its allocation is always that of a `Vec<T>` with this capacity.
#[repr(C)]
pub struct Array<T> {
    data: *mut T,
    len: usize,
    cap: usize,
}

pub type Buf = Array<u8>;
pub type Ids = Array<u32>;

impl<T: Copy> Array<T> {
    pub const fn empty() -> Self {
        Array { data: std::ptr::null_mut(), len: 0, cap: 0 }
    }

    /// Takes the allocation out, emptied, so that it can be filled again.
    fn take(&mut self) -> Vec<T> {
        let old = std::mem::replace(self, Self::empty());
        if old.data.is_null() || old.cap == 0 {
            return Vec::new();
        }
        // SAFETY: non-null data only ever comes from `put`, with the capacity of the Vec it came from.
        unsafe { Vec::from_raw_parts(old.data, 0, old.cap) }
    }

    fn put(&mut self, v: Vec<T>) {
        let mut v = std::mem::ManuallyDrop::new(v);
        if v.capacity() == 0 {
            *self = Self::empty();
        } else {
            *self = Array { data: v.as_mut_ptr(), len: v.len(), cap: v.capacity() };
        }
    }

    /// Replaces the contents with a copy, reusing the allocation.
    pub fn set(&mut self, contents: &[T]) {
        let mut v = self.take();
        v.extend_from_slice(contents);
        self.put(v);
    }

    /// Replaces the contents with `v` itself.
    pub fn replace(&mut self, v: Vec<T>) {
        drop(self.take());
        self.put(v);
    }

    pub fn free(&mut self) {
        drop(self.take());
    }

    #[cfg(test)]
    pub fn as_slice(&self) -> &[T] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: see `take`.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// Runs `body`; its error, or a panic's message, goes to `err` (if there is one) and becomes a status.
///
/// # Safety
/// `err` is null or points to a valid `dwb_buf`.
pub unsafe fn status(err: *mut Buf, body: impl FnOnce() -> Result<()>) -> i32 {
    match guarded(body) {
        Ok(()) => OK,
        Err(e) => {
            report(err, &e);
            e.code
        }
    }
}

/// The same for functions that make an object: null on error.
///
/// # Safety
/// As for `status`.
pub unsafe fn pointer<T>(err: *mut Buf, body: impl FnOnce() -> Result<T>) -> *mut T {
    match guarded(body) {
        Ok(object) => Box::into_raw(Box::new(object)),
        Err(e) => {
            report(err, &e);
            std::ptr::null_mut()
        }
    }
}

/// For functions that cannot fail in any way but a bug of ours; `fallback` is what C sees then.
pub fn infallible<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    guarded(|| Ok(body())).unwrap_or(fallback)
}

/// Drops an object made by `pointer`; null is allowed.
///
/// # Safety
/// `object` is null or came from `pointer` and is not used again.
pub unsafe fn release<T>(object: *mut T) {
    infallible((), || {
        if !object.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(object) });
        }
    });
}

fn guarded<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let text = payload
            .downcast_ref::<&str>()
            .map(|s| s.to_string())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_string());
        // A payload whose own drop panics must not get out either.
        std::mem::forget(payload);
        Err(Error::internal(format!("internal error in the bridge: {text}")))
    })
}

/// # Safety
/// `err` is null or valid.
unsafe fn report(err: *mut Buf, e: &Error) {
    // SAFETY: the caller's promise.
    if let Some(err) = unsafe { err.as_mut() } {
        // A NUL stands behind the text, not counted in `len`, so that C can print `data` as it is.
        let mut v = err.take();
        v.extend_from_slice(e.message.as_bytes());
        v.push(0);
        err.put(v);
        err.len -= 1;
    }
}

/// A borrowed (pointer, length) pair; null is allowed only with length 0.
///
/// # Safety
/// A non-null `data` points to `len` initialised values that outlive `'a`.
pub unsafe fn slice<'a, T>(data: *const T, len: usize, what: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Error::invalid(format!("{what}: null pointer with length {len}")));
    }
    if len > isize::MAX as usize / std::mem::size_of::<T>().max(1) {
        return Err(Error::invalid(format!("{what}: length {len} is too large")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

/// A borrowed UTF-8 text.
///
/// # Safety
/// As for `slice`.
pub unsafe fn text<'a>(data: *const u8, len: usize, what: &str) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice(data, len, what)? };
    std::str::from_utf8(bytes)
        .map_err(|e| Error::invalid(format!("{what} is not UTF-8 at byte {}", e.valid_up_to())))
}

/// A required pointer to an object.
///
/// # Safety
/// Null, or valid for `'a`.
pub unsafe fn object<'a, T>(p: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { p.as_ref() }.ok_or_else(|| Error::invalid(format!("{what} is null")))
}

/// A required pointer to something to write.
///
/// # Safety
/// Null, or valid and not aliased for `'a`.
pub unsafe fn out<'a, T>(p: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { p.as_mut() }.ok_or_else(|| Error::invalid(format!("{what} is null")))
}

#[no_mangle]
pub unsafe extern "C" fn dwb_buf_free(buf: *mut Buf) {
    if let Some(buf) = unsafe { buf.as_mut() } {
        buf.free();
    }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_ids_free(ids: *mut Ids) {
    if let Some(ids) = unsafe { ids.as_mut() } {
        ids.free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status_and_a_message() {
        let mut err = Buf::empty();
        let code = unsafe { status(&mut err, || panic!("seen {}", 7)) };
        assert_eq!(code, INTERNAL);
        assert!(std::str::from_utf8(err.as_slice()).unwrap().ends_with("seen 7"));
        assert_eq!(unsafe { *err.data.add(err.len) }, 0);
        err.free();
        assert!(err.data.is_null());
    }

    #[test]
    fn an_array_reuses_its_allocation() {
        let mut ids = Ids::empty();
        ids.set(&[1, 2, 3, 4]);
        let (data, cap) = (ids.data, ids.cap);
        ids.set(&[5]);
        assert_eq!((ids.data, ids.cap, ids.as_slice()), (data, cap, &[5][..]));
        ids.free();
    }

    #[test]
    fn null_needs_length_zero() {
        assert!(unsafe { slice::<u8>(std::ptr::null(), 0, "x") }.unwrap().is_empty());
        assert_eq!(unsafe { slice::<u8>(std::ptr::null(), 1, "x") }.unwrap_err().code, INVALID_ARGUMENT);
    }
}
