//! How a text is cut into words before byte pairs are merged, by the name in GGUF's `tokenizer.ggml.pre`.
//!
//! A name is one row of `FAMILIES`. A family is a list of patterns, applied one after the other, each to the
//! pieces the one before has left; what a pattern matches and what lies between matches are pieces.
//! The patterns are those published with the models' tokenizers.

use crate::boundary::{Error, Result};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

/// A contraction, a word, a number or a run of punctuation, each with its leading space; spaces otherwise.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const DIGIT: &str = r"\p{N}";
const DIGITS: &str = r"\p{N}+";
const THREE_DIGITS: &str = r"[0-9][0-9][0-9]";
const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|]+";
const PUNCTUATION_AND_TICK: &str = r"[\p{P}\$\+<=>\^~\|`]+";
/// The llama 3 family takes up to three digits together, qwen 2 one, otherwise they agree.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// As qwen 2, with combining marks counted to the words.
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Words end where a lower-case letter is followed by an upper-case one.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

pub struct Family {
    names: &'static [&'static str],
    patterns: &'static [&'static str],
    /// What holds if the file is silent.
    pub ignore_merges: bool,
    pub add_bos: bool,
}

const fn family(names: &'static [&'static str], patterns: &'static [&'static str]) -> Family {
    Family { names, patterns, ignore_merges: false, add_bos: false }
}

static FAMILIES: &[Family] = &[
    family(&["default", ""], &[PUNCTUATION, GPT2, DIGITS, THREE_DIGITS]),
    family(
        &["gpt-2", "phi-2", "mpt", "olmo", "jais", "exaone4", "jina-es", "jina-de", "gigachat"],
        &[GPT2],
    ),
    family(
        &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"],
        &[DIGIT, GPT2],
    ),
    family(&["falcon"], &[PUNCTUATION_AND_TICK, GPT2, THREE_DIGITS]),
    family(&["qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "kormo"], &[QWEN2]),
    family(&["qwen35"], &[QWEN35]),
    Family {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"],
        patterns: &[LLAMA3],
        ignore_merges: true,
        add_bos: true,
    },
    family(&["dbrx", "smaug-bpe", "chatglm-bpe"], &[LLAMA3]),
    Family { names: &["glm4"], patterns: &[LLAMA3], ignore_merges: true, add_bos: false },
    Family { names: &["tekken"], patterns: &[TEKKEN], ignore_merges: true, add_bos: true },
    family(&["gpt-4o", "llama4"], &[GPT4O]),
];

impl Family {
    pub fn named(name: &str) -> Result<&'static Family> {
        FAMILIES.iter().find(|f| f.names.contains(&name)).ok_or_else(|| {
            let known: Vec<&str> = FAMILIES.iter().map(|f| f.names[0]).collect();
            Error::unsupported(format!(
                "unsupported pre-tokenizer '{name}' (tokenizer.ggml.pre); supported families: {}",
                known.join(", ")
            ))
        })
    }

    pub fn pre_tokenizer(&self) -> Result<Sequence> {
        let mut steps = Vec::with_capacity(self.patterns.len() + 1);
        for pattern in self.patterns {
            let pattern = SplitPattern::Regex(pattern.to_string());
            let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(Error::internal)?;
            steps.push(split.into());
        }
        // Spells the bytes in the vocabulary's alphabet; the words are cut already.
        steps.push(ByteLevel::new(false, false, false).into());
        Ok(Sequence::new(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::tokenizer::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    fn words(name: &str, text: &str) -> Vec<String> {
        let mut pieces = PreTokenizedString::from(text);
        Family::named(name).unwrap().pre_tokenizer().unwrap().pre_tokenize(&mut pieces).unwrap();
        let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.iter().map(|(_, range, _)| text[range.0..range.1].to_string()).collect()
    }

    #[test]
    fn names_are_unique_and_patterns_compile() {
        let mut seen = std::collections::HashSet::new();
        for f in FAMILIES {
            f.pre_tokenizer().unwrap();
            assert!(f.names.iter().all(|n| seen.insert(*n)));
        }
    }

    #[test]
    fn families_differ_where_they_should() {
        assert_eq!(words("smollm", "it's 1234  x"), ["it", "'s", " ", "1", "2", "3", "4", " ", " x"]);
        assert_eq!(words("gpt-2", "it's 1234  x"), ["it", "'s", " 1234", " ", " x"]);
        assert_eq!(words("llama-bpe", "IT'S 1234\n\nx"), ["IT", "'S", " ", "123", "4", "\n\n", "x"]);
        assert_eq!(words("qwen2", "a 1234"), ["a", " ", "1", "2", "3", "4"]);
        assert_eq!(words("tekken", "fooBar"), ["foo", "Bar"]);
        assert_eq!(words("default", "a+b 12345"), ["a", "+", "b", " ", "123", "45"]);
    }

    #[test]
    fn an_unknown_name_is_told() {
        let e = Family::named("no-such").err().unwrap();
        assert_eq!(e.code, crate::boundary::UNSUPPORTED);
        assert!(e.message.contains("no-such"));
    }
}
