//! Text to ids and ids to bytes, on top of the `tokenizers` crate.
//!
//! Two things differ from that crate's own `encode` and `decode`:
//!  * whether special tokens are parsed is decided per call, not per tokenizer. So the added vocabulary exists
//!    twice (it is small), and the steps of `encode` are run here one by one;
//!  * decoding gives bytes. A token is often half a character; the crate would put U+FFFD there. So each
//!    token's bytes are worked out once (`bytes`), and decoding is concatenation.

mod bpe;
mod bytes;
mod ffi;
mod pre;

use crate::boundary::{Error, Result};
use bytes::{Style, TokenTable};
use tokenizers::tokenizer::{AddedVocabulary, Model, OffsetType, PreTokenizer};

/// What stands around a text when special tokens are asked for.
enum Frame {
    /// The post-processor of a tokenizer.json decides.
    PostProcessor,
    /// GGUF: BOS in front, EOS behind.
    Ends { bos: Option<u32>, eos: Option<u32> },
}

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// The added vocabulary that leaves special tokens in the text as plain text.
    plain: AddedVocabulary,
    table: TokenTable,
    style: Style,
    frame: Frame,
}

impl Tokenizer {
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let mut inner = tokenizers::Tokenizer::from_bytes(json)
            .map_err(|e| Error::invalid(format!("tokenizer.json: {e}")))?;
        inner.with_truncation(None).map_err(Error::internal)?;
        inner.with_padding(None);
        inner.set_encode_special_tokens(false);
        let style = Style::of(&inner);
        let table = TokenTable::new(&inner, &style);
        Ok(Self::assemble(inner, table, style, Frame::PostProcessor))
    }

    fn assemble(inner: tokenizers::Tokenizer, table: TokenTable, style: Style, frame: Frame) -> Self {
        let mut plain = inner.get_added_vocabulary().clone();
        plain.set_encode_special_tokens(true);
        Tokenizer { inner, plain, table, style, frame }
    }

    pub fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<u32>> {
        let added = if parse_special { self.inner.get_added_vocabulary() } else { &self.plain };
        let mut pieces = added.extract_and_normalize(self.inner.get_normalizer(), text);
        if let Some(pre) = self.inner.get_pre_tokenizer() {
            pre.pre_tokenize(&mut pieces).map_err(failed)?;
        }
        let model = self.inner.get_model();
        pieces.tokenize(|piece| model.tokenize(piece.get())).map_err(failed)?;
        let encoding = pieces.into_encoding(None, 0, OffsetType::None).map_err(failed)?;
        if !add_special {
            return Ok(encoding.get_ids().to_vec());
        }
        match self.frame {
            Frame::PostProcessor => {
                let framed = self.inner.post_process(encoding, None, true).map_err(failed)?;
                Ok(framed.get_ids().to_vec())
            }
            Frame::Ends { bos, eos } => {
                let ids = encoding.get_ids();
                Ok(bos.into_iter().chain(ids.iter().copied()).chain(eos).collect())
            }
        }
    }

    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<Vec<u8>> {
        let Style::Text = self.style else {
            return Ok(self.concatenate(ids, skip_special));
        };
        self.inner.decode(ids, skip_special).map(String::into_bytes).map_err(failed)
    }

    fn concatenate(&self, ids: &[u32], skip_special: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(ids.len() * 4);
        for &id in ids {
            if let Some(token) = self.table.get(id) {
                if !(skip_special && token.special) {
                    out.extend_from_slice(token.bytes);
                }
            }
        }
        let strip = self.style.leading_spaces().min(out.iter().take_while(|b| **b == b' ').count());
        out.drain(..strip);
        out
    }

    fn token_to_id(&self, text: &str) -> Option<u32> {
        self.inner.token_to_id(text)
    }
}

fn failed(e: tokenizers::Error) -> Error {
    Error::internal(format!("tokenizer: {e}"))
}

#[cfg(test)]
mod tests;
