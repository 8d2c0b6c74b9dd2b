//! The bytes each token stands for.


/// How spellings in the vocabulary become bytes; read off the decoder of a tokenizer.json.
#[derive(Clone, Debug, PartialEq)]
pub enum Style {
    /// GPT-2's alphabet: one printable character per byte.
    ByteLevel,
    /// U+2581 is a space, <0xAB> a byte; the decoder drops up to `strip` spaces at the start.
    Sentence { strip: usize },
    /// Anything else: tokens have no bytes of their own, the library decodes whole sequences.
    Text,
}

const SPACE_MARK: char = '\u{2581}';

impl Style {
    pub fn of(tokenizer: &tokenizers::Tokenizer) -> Self {
        let Some(decoder) = tokenizer.get_decoder() else {
            return Style::Text;
        };
        let Ok(config) = serde_json::to_value(decoder) else {
            return Style::Text;
        };
        Self::of_config(&config).unwrap_or(Style::Text)
    }

    /// None: a step is there that this module does not know.
    fn of_config(config: &serde_json::Value) -> Option<Self> {
        match config["type"].as_str()? {
            "ByteLevel" => Some(Style::ByteLevel),
            // Without a prefix nothing was put in front that would have to go again.
            "Metaspace" if config["replacement"] == "▁" => {
                Some(Style::Sentence { strip: usize::from(config["prepend_scheme"] != "never") })
            }
            "Sequence" => Self::of_steps(config["decoders"].as_array()?),
            _ => None,
        }
    }

    fn of_steps(steps: &[serde_json::Value]) -> Option<Self> {
        if let [only] = steps {
            return Self::of_config(only);
        }
        let (mut replaces, mut strip) = (false, 0);
        for step in steps {
            match step["type"].as_str()? {
                "Replace" if step["pattern"]["String"] == "▁" && step["content"] == " " => replaces = true,
                "ByteFallback" | "Fuse" => {}
                "Strip" if step["content"] == " " && step["stop"] == 0 => {
                    strip = step["start"].as_u64()? as usize;
                }
                _ => return None,
            }
        }
        replaces.then_some(Style::Sentence { strip })
    }

    pub fn leading_spaces(&self) -> usize {
        match self {
            Style::Sentence { strip } => *strip,
            _ => 0,
        }
    }

    /// The bytes of a token that the model's vocabulary spells `spelling`.
    pub fn bytes(&self, spelling: &str, out: &mut Vec<u8>) {
        match self {
            Style::ByteLevel => byte_level(spelling, out),
            Style::Sentence { .. } => match byte_token(spelling) {
                Some(b) => out.push(b),
                None => out.extend_from_slice(spelling.replace(SPACE_MARK, " ").as_bytes()),
            },
            Style::Text => out.extend_from_slice(spelling.as_bytes()),
        }
    }

    /// The bytes of an added token, which is spelled as it is in texts.
    fn added_bytes(&self, content: &str, special: bool, out: &mut Vec<u8>) {
        match self {
            Style::Sentence { .. } if !special => self.bytes(content, out),
            _ => out.extend_from_slice(content.as_bytes()),
        }
    }
}

/// `<0xAB>`: the byte 0xAB.
pub fn byte_token(spelling: &str) -> Option<u8> {
    let hex = spelling.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() != 2 {
        return None;
    }
    u8::from_str_radix(hex, 16).ok()
}

/// A spelling with a character outside the alphabet is no byte-level spelling: it stands for itself.
fn byte_level(spelling: &str, out: &mut Vec<u8>) {
    let start = out.len();
    for c in spelling.chars() {
        match byte_of(c) {
            Some(b) => out.push(b),
            None => {
                out.truncate(start);
                out.extend_from_slice(spelling.as_bytes());
                return;
            }
        }
    }
}

/// GPT-2's alphabet: the printable characters of Latin-1 stand for themselves; the 68 other bytes, in
/// ascending order, are U+0100 and up.
fn byte_of(c: char) -> Option<u8> {
    let code = c as u32;
    match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => Some(code as u8),
        0x100..=0x120 => Some((code - 0x100) as u8),          // 0x00..=0x20
        0x121..=0x142 => Some((code - 0x121 + 0x7F) as u8),   // 0x7F..=0xA0
        0x143 => Some(0xAD),
        _ => None,
    }
}

pub struct TokenBytes<'a> {
    pub bytes: &'a [u8],
    pub special: bool,
}

/// All tokens' bytes in one allocation; ids may have gaps.
pub struct TokenTable {
    bytes: Vec<u8>,
    entries: Vec<Option<Entry>>,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    len: u32,
    special: bool,
}

impl TokenTable {
    pub fn new(tokenizer: &tokenizers::Tokenizer, style: &Style) -> Self {
        let mut table = TokenTable { bytes: Vec::new(), entries: Vec::new() };
        for (spelling, id) in tokenizer.get_vocab(false) {
            table.insert(id, false, |out| style.bytes(&spelling, out));
        }
        for (id, token) in tokenizer.get_added_tokens_decoder() {
            table.insert(id, token.special, |out| style.added_bytes(&token.content, token.special, out));
        }
        table
    }

    pub fn with_capacity(tokens: usize) -> Self {
        TokenTable { bytes: Vec::with_capacity(tokens * 8), entries: Vec::with_capacity(tokens) }
    }

    pub fn insert(&mut self, id: u32, special: bool, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let entry = Entry { start: start as u32, len: (self.bytes.len() - start) as u32, special };
        let index = id as usize;
        if index >= self.entries.len() {
            self.entries.resize(index + 1, None);
        }
        self.entries[index] = Some(entry);
    }

    pub fn get(&self, id: u32) -> Option<TokenBytes<'_>> {
        let e = (*self.entries.get(id as usize)?)?;
        let start = e.start as usize;
        Some(TokenBytes { bytes: &self.bytes[start..start + e.len as usize], special: e.special })
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokenizers::tokenizer::Decoder;

    #[test]
    fn the_alphabet_is_that_of_the_library() {
        use tokenizers::decoders::byte_level::ByteLevel;
        let mut seen = [false; 256];
        for c in ByteLevel::alphabet() {
            let b = byte_of(c).expect("a byte for every character");
            assert!(!std::mem::replace(&mut seen[b as usize], true), "byte {b} twice");
            if b < 0x80 {
                let text = ByteLevel::default().decode_chain(vec![c.to_string()]).unwrap().concat();
                assert_eq!(text.as_bytes(), [b]);
            }
        }
        assert!(seen.iter().all(|s| *s));
        assert_eq!(byte_of(' '), None);
    }

    #[test]
    fn styles_are_read_off_the_decoder() {
        let gemma = json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}]});
        assert_eq!(Style::of_config(&gemma), Some(Style::Sentence { strip: 0 }));
        let mut llama = gemma.clone();
        llama["decoders"].as_array_mut().unwrap().push(json!(
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        assert_eq!(Style::of_config(&llama), Some(Style::Sentence { strip: 1 }));
        assert_eq!(Style::of_config(&json!({"type": "ByteLevel"})), Some(Style::ByteLevel));
        assert_eq!(Style::of_config(&json!({"type": "WordPiece"})), None);
    }

    #[test]
    fn byte_tokens() {
        assert_eq!(byte_token("<0x0A>"), Some(10));
        assert_eq!(byte_token("<0xfF>"), Some(255));
        for no in ["<0x>", "<0x1>", "<0x100>", "<0x+1>x", "0x0A"] {
            assert_eq!(byte_token(no), None, "{no}");
        }
    }
}
