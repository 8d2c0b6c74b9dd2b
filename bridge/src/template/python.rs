//! Values as Python spells them: `str`, `repr` and `json.dumps`. Templates are written for Python, and what
//! they print goes into prompts, so a `True` must not become a `true`.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};
use std::fmt::Write;

type Result<T> = std::result::Result<T, Error>;

/// Deeper values are refused rather than walked.
const DEPTH_LIMIT: usize = 500;

fn check_depth(depth: usize) -> Result<()> {
    if depth > DEPTH_LIMIT {
        return Err(Error::new(ErrorKind::InvalidOperation, "a value is nested too deeply"));
    }
    Ok(())
}

/// `str(value)`; an undefined value is the empty text.
pub fn text(value: &Value) -> Result<String> {
    if let Some(s) = value.as_str() {
        return Ok(s.to_string());
    }
    let mut out = String::new();
    if !value.is_undefined() {
        repr(value, 0, &mut out)?;
    }
    Ok(out)
}

fn repr(value: &Value, depth: usize, out: &mut String) -> Result<()> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => repr_text(value.as_str().unwrap_or_default(), out),
        ValueKind::Seq => {
            out.push('[');
            for (i, item) in value.try_iter()?.enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                repr(&item, depth + 1, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (i, key) in value.try_iter()?.enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                repr(&key, depth + 1, out)?;
                out.push_str(": ");
                repr(&value.get_item(&key)?, depth + 1, out)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

fn repr_text(s: &str, out: &mut String) {
    let quote = if s.contains('\'') && !s.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in s.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = c as u32;
                // Writing to a String cannot fail.
                let _ = match code {
                    0..=0xFF => write!(out, "\\x{code:02x}"),
                    0x100..=0xFFFF => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// Python escapes controls, format characters and all spaces but the ordinary one.
fn is_printable(c: char) -> bool {
    let format = matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E000}'..='\u{F8FF}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || format)
}

fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float)
}

/// Shortest digits that read back the same, as in Rust; Python's choice of when to use an exponent.
fn float(f: f64) -> String {
    if f.is_nan() {
        return "nan".into();
    }
    if f.is_infinite() {
        return if f > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{f:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if f != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{f:?}")
}

/// The arguments of Hugging Face's `tojson`, which are those of `json.dumps`.
pub struct JsonStyle {
    pub indent: Option<usize>,
    pub ensure_ascii: bool,
    pub sort_keys: bool,
    pub separators: Option<(String, String)>,
}

pub fn json(value: &Value, style: &JsonStyle) -> Result<String> {
    let (item, key) = match &style.separators {
        Some((item, key)) => (item.as_str(), key.as_str()),
        None if style.indent.is_some() => (",", ": "),
        None => (", ", ": "),
    };
    let mut writer = JsonWriter { out: String::new(), style, item, key };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct JsonWriter<'a> {
    out: String,
    style: &'a JsonStyle,
    item: &'a str,
    key: &'a str,
}

impl JsonWriter<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        check_depth(depth)?;
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.number(value),
            ValueKind::String => self.text(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.sequence(value, depth)?,
            ValueKind::Map => self.map(value, depth)?,
            kind => {
                let detail = format!("a value of kind {kind} cannot be written as JSON");
                return Err(Error::new(ErrorKind::BadSerialization, detail));
            }
        }
        Ok(())
    }

    fn sequence(&mut self, value: &Value, depth: usize) -> Result<()> {
        self.out.push('[');
        let mut empty = true;
        for item in value.try_iter()? {
            self.before_item(&mut empty, depth);
            self.value(&item, depth + 1)?;
        }
        self.end(']', empty, depth);
        Ok(())
    }

    fn map(&mut self, value: &Value, depth: usize) -> Result<()> {
        self.out.push('{');
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.style.sort_keys {
            keys.sort();
        }
        let mut empty = true;
        for key in keys {
            self.before_item(&mut empty, depth);
            match key.kind() {
                ValueKind::String => self.value(&key, depth + 1)?,
                _ => {
                    self.out.push('"');
                    self.value(&key, depth + 1)?;
                    self.out.push('"');
                }
            }
            self.out.push_str(self.key);
            self.value(&value.get_item(&key)?, depth + 1)?;
        }
        self.end('}', empty, depth);
        Ok(())
    }

    fn before_item(&mut self, first: &mut bool, depth: usize) {
        if !std::mem::take(first) {
            self.out.push_str(self.item);
        }
        self.line(depth + 1);
    }

    fn end(&mut self, bracket: char, empty: bool, depth: usize) {
        if !empty {
            self.line(depth);
        }
        self.out.push(bracket);
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = self.style.indent {
            self.out.push('\n');
            // A width that only wastes memory is cut.
            self.out.extend(std::iter::repeat_n(' ', indent.min(64) * depth));
        }
    }

    fn number(&mut self, value: &Value) {
        let text = match number(value).as_str() {
            "nan" => "NaN".to_string(),
            "inf" => "Infinity".to_string(),
            "-inf" => "-Infinity".to_string(),
            finite => finite.to_string(),
        };
        self.out.push_str(&text);
    }

    fn text(&mut self, s: &str) {
        self.out.push('"');
        for c in s.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{C}' => self.out.push_str("\\f"),
                c if c < ' ' || (self.style.ensure_ascii && c > '~') => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        // Writing to a String cannot fail.
                        let _ = write!(self.out, "\\u{unit:04x}");
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::from_serialize(serde_json::from_str::<serde_json::Value>(json).unwrap())
    }

    #[test]
    fn str_is_pythons() {
        let v = value(r#"{"b":[true,null,1.0,1e22,1e-7,0.1],"a":"it's","c":"\"'\n\u0001é\u00a0"}"#);
        let want = r#"{'b': [True, None, 1.0, 1e+22, 1e-07, 0.1], 'a': "it's", 'c': '"\'\n\x01é\xa0'}"#;
        assert_eq!(text(&v).unwrap(), want);
        assert_eq!(text(&Value::UNDEFINED).unwrap(), "");
        assert_eq!(text(&Value::from("plain")).unwrap(), "plain");
    }

    #[test]
    fn json_is_pythons() {
        let v = value(r#"{"b":[1,"<é>\u001f",{}],"a":[],"n":-0.0}"#);
        let mut style = JsonStyle { indent: None, ensure_ascii: false, sort_keys: false, separators: None };
        assert_eq!(json(&v, &style).unwrap(), r#"{"b": [1, "<é>\u001f", {}], "a": [], "n": -0.0}"#);
        style.ensure_ascii = true;
        style.sort_keys = true;
        style.separators = Some((",".into(), ":".into()));
        assert_eq!(json(&v, &style).unwrap(), r#"{"a":[],"b":[1,"<\u00e9>\u001f",{}],"n":-0.0}"#);
        style = JsonStyle { indent: Some(2), ensure_ascii: false, sort_keys: false, separators: None };
        let want = "{\n  \"b\": [\n    1,\n    \"<é>\\u001f\",\n    {}\n  ],\n  \"a\": [],\n  \"n\": -0.0\n}";
        assert_eq!(json(&v, &style).unwrap(), want);
    }
}
