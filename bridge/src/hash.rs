//! BLAKE3, at once and incrementally.

use crate::boundary::{infallible, object, out, pointer, release, slice, status, Result};

pub struct Hasher(blake3::Hasher);

fn write(digest: blake3::Hash, to: *mut u8) -> Result<()> {
    // SAFETY: the header asks for 32 writable bytes.
    *unsafe { out(to.cast::<[u8; 32]>(), "out")? } = *digest.as_bytes();
    Ok(())
}

#[no_mangle]
pub unsafe extern "C" fn dwb_blake3(data: *const u8, len: usize, digest: *mut u8) -> i32 {
    unsafe { status(std::ptr::null_mut(), || write(blake3::hash(slice(data, len, "data")?), digest)) }
}

#[no_mangle]
pub extern "C" fn dwb_hasher_new() -> *mut Hasher {
    unsafe { pointer(std::ptr::null_mut(), || Ok(Hasher(blake3::Hasher::new()))) }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_hasher_update(hasher: *mut Hasher, data: *const u8, len: usize) -> i32 {
    unsafe {
        status(std::ptr::null_mut(), || {
            out(hasher, "hasher")?.0.update(slice(data, len, "data")?);
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_hasher_finish(hasher: *const Hasher, digest: *mut u8) -> i32 {
    unsafe { status(std::ptr::null_mut(), || write(object(hasher, "hasher")?.0.finalize(), digest)) }
}

#[no_mangle]
pub unsafe extern "C" fn dwb_hasher_reset(hasher: *mut Hasher) {
    infallible((), || {
        if let Some(h) = unsafe { hasher.as_mut() } {
            h.0.reset();
        }
    });
}

#[no_mangle]
pub unsafe extern "C" fn dwb_hasher_free(hasher: *mut Hasher) {
    unsafe { release(hasher) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_whole_agree_with_the_published_value() {
        let mut whole = [0u8; 32];
        assert_eq!(unsafe { dwb_blake3(b"abc".as_ptr(), 3, whole.as_mut_ptr()) }, 0);
        let hex: String = whole.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");

        let h = dwb_hasher_new();
        let mut pieces = [0u8; 32];
        unsafe {
            for b in b"abc" {
                assert_eq!(dwb_hasher_update(h, b, 1), 0);
            }
            assert_eq!(dwb_hasher_finish(h, pieces.as_mut_ptr()), 0);
            assert_eq!(dwb_hasher_finish(h, std::ptr::null_mut()), 1);
            dwb_hasher_free(h);
        }
        assert_eq!(whole, pieces);
    }
}
