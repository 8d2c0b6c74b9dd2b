//! A byte-level BPE tokenizer from the arrays of a GGUF file.

use super::bytes::{byte_token, Style, TokenTable};
use super::pre::Family;
use super::{Frame, Tokenizer};
use crate::boundary::{Error, Result};
use std::collections::HashSet;
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::bpe::{Vocab, BPE};
use tokenizers::AddedToken;

const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

/// `dwb_bpe_spec`, with checked slices.
pub struct Spec<'a> {
    pub tokens: Vec<&'a str>,
    /// Empty: all normal.
    pub types: &'a [i32],
    pub merges: Vec<&'a str>,
    pub pre: &'a str,
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub add_bos: Option<bool>,
    pub add_eos: Option<bool>,
    pub ignore_merges: Option<bool>,
}

impl Spec<'_> {
    fn kind(&self, id: usize) -> i32 {
        self.types.get(id).copied().unwrap_or(1)
    }

    fn check(&self) -> Result<()> {
        if self.tokens.is_empty() {
            return Err(Error::invalid("the vocabulary is empty"));
        }
        if self.tokens.len() > i32::MAX as usize {
            return Err(Error::invalid("the vocabulary has too many tokens"));
        }
        for (id, name) in [(self.bos, "bos"), (self.eos, "eos")] {
            if id.is_some_and(|id| id as usize >= self.tokens.len()) {
                return Err(Error::invalid(format!("{name}_id lies outside the vocabulary")));
            }
        }
        Ok(())
    }
}

impl Tokenizer {
    pub fn from_bpe(spec: &Spec) -> Result<Self> {
        spec.check()?;
        let family = Family::named(spec.pre)?;
        let mut inner = tokenizers::Tokenizer::new(model(spec, family)?);
        inner.with_pre_tokenizer(Some(family.pre_tokenizer()?));
        inner.with_decoder(Some(ByteLevel::default()));
        let (special, user): (Vec<_>, Vec<_>) = added_tokens(spec).into_iter().partition(|t| t.special);
        inner.add_special_tokens(&special);
        inner.add_tokens(&user);

        let wanted = |flag: Option<bool>, usual, id: Option<u32>, name| match (flag, id) {
            (Some(true), None) => Err(Error::invalid(format!("add_{name} is set, but there is no {name}_id"))),
            _ => Ok(id.filter(|_| flag.unwrap_or(usual))),
        };
        let frame = Frame::Ends {
            bos: wanted(spec.add_bos, family.add_bos, spec.bos, "bos")?,
            eos: wanted(spec.add_eos, false, spec.eos, "eos")?,
        };
        Ok(Self::assemble(inner, table(spec), Style::ByteLevel, frame))
    }
}

fn model(spec: &Spec, family: &Family) -> Result<BPE> {
    let vocabulary = vocabulary(spec)?;
    let mut merges = Vec::with_capacity(spec.merges.len());
    for (i, merge) in spec.merges.iter().enumerate() {
        let (left, right) = split_merge(merge)
            .ok_or_else(|| bad_merge(i, merge, "is not two tokens with a space between"))?;
        merges.push((left.to_string(), right.to_string()));
    }
    BPE::builder()
        .vocab_and_merges(vocabulary, merges)
        .ignore_merges(spec.ignore_merges.unwrap_or(family.ignore_merges))
        .build()
        .map_err(|e| stray_merge(spec).unwrap_or_else(|| Error::invalid(format!("vocabulary: {e}"))))
}

/// Ids by spelling. Unused places of a padded vocabulary may be empty texts.
fn vocabulary(spec: &Spec) -> Result<Vocab> {
    let mut ids = Vocab::with_capacity(spec.tokens.len());
    for (id, token) in spec.tokens.iter().enumerate() {
        let first = *ids.entry(token.to_string()).or_insert(id as u32);
        if first as usize != id && !token.is_empty() {
            return Err(Error::invalid(format!(
                "tokens spells '{}' twice, as tokens {first} and {id}",
                shown(token)
            )));
        }
    }
    Ok(ids)
}

/// What is wrong with the merges, if one of them needs or makes what is no token. The crate finds that, too, but
/// does not say where.
fn stray_merge(spec: &Spec) -> Option<Error> {
    let known: HashSet<&str> = spec.tokens.iter().copied().collect();
    spec.merges.iter().enumerate().find_map(|(i, merge)| {
        let (left, right) = split_merge(merge)?;
        if let Some(half) = [left, right].into_iter().find(|half| !known.contains(half)) {
            return Some(bad_merge(i, merge, &format!("needs '{}', which is no token", shown(half))));
        }
        let both = format!("{left}{right}");
        (!known.contains(both.as_str()))
            .then(|| bad_merge(i, merge, &format!("makes '{}', which is no token", shown(&both))))
    })
}

fn bad_merge(entry: usize, merge: &str, what: &str) -> Error {
    Error::invalid(format!("merges entry {entry}, '{}', {what}", shown(merge)))
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The space between the halves is the first that is not the left half's own first character.
fn split_merge(merge: &str) -> Option<(&str, &str)> {
    let first = merge.chars().next()?.len_utf8();
    let at = first + merge[first..].find(' ')?;
    let (left, right) = (&merge[..at], &merge[at + 1..]);
    (!right.is_empty()).then_some((left, right))
}

fn added_tokens(spec: &Spec) -> Vec<AddedToken> {
    let added = |id: usize, token: &str| {
        let kind = spec.kind(id);
        let special = matches!(kind, UNKNOWN | CONTROL);
        (special || kind == USER_DEFINED).then(|| AddedToken::from(token, special).normalized(false))
    };
    spec.tokens.iter().enumerate().filter_map(|(id, token)| added(id, token)).collect()
}

fn table(spec: &Spec) -> TokenTable {
    let mut table = TokenTable::with_capacity(spec.tokens.len());
    for (id, token) in spec.tokens.iter().enumerate() {
        let kind = spec.kind(id);
        table.insert(id as u32, matches!(kind, UNKNOWN | CONTROL), |out| match (kind, byte_token(token)) {
            (BYTE, Some(b)) => out.push(b),
            (UNKNOWN | CONTROL | USER_DEFINED, _) => out.extend_from_slice(token.as_bytes()),
            _ => Style::ByteLevel.bytes(token, out),
        });
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_are_cut_at_the_right_space() {
        assert_eq!(split_merge("a b"), Some(("a", "b")));
        assert_eq!(split_merge("  b"), Some((" ", "b")));
        assert_eq!(split_merge("Ġ t"), Some(("Ġ", "t")));
        for bad in ["", "a", "a ", " "] {
            assert_eq!(split_merge(bad), None, "{bad:?}");
        }
    }
}
