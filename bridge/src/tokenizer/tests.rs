use super::bpe::Spec;
use super::Tokenizer;
use crate::boundary::INVALID_ARGUMENT;

/// Bytes a..c, space, the two bytes of é, a merge, a control and a user-defined token.
const TOKENS: [&str; 10] = ["<unk>", "<|end|>", "<tool>", "a", "b", "Ġ", "Ã", "©", "ab", "Ġab"];
const TYPES: [i32; 10] = [2, 3, 4, 1, 1, 1, 1, 1, 1, 1];

fn spec() -> Spec<'static> {
    Spec {
        tokens: TOKENS.to_vec(),
        types: &TYPES,
        merges: vec!["a b", "Ġ ab"],
        pre: "gpt-2",
        bos: Some(1),
        eos: None,
        add_bos: Some(true),
        add_eos: None,
        ignore_merges: None,
    }
}

#[test]
fn bpe_merges_and_special_tokens() {
    let t = Tokenizer::from_bpe(&spec()).unwrap();
    assert_eq!(t.encode("ab ab a", false, true).unwrap(), [8, 9, 5, 3]);
    assert_eq!(t.encode("ab", true, true).unwrap(), [1, 8]);
    assert_eq!(t.encode("a<|end|><tool>b", false, true).unwrap(), [3, 1, 2, 4]);
    // The control token's spelling is plain text now (of which only bytes in the vocabulary remain).
    assert_eq!(t.encode("a<|end|><tool>b", false, false).unwrap(), [3, 2, 4]);
    assert_eq!(t.token_to_id("<tool>"), Some(2));
    assert_eq!(t.token_to_id("zz"), None);
}

#[test]
fn decoding_keeps_half_characters() {
    let t = Tokenizer::from_bpe(&spec()).unwrap();
    assert_eq!(t.decode(&[3, 6], false).unwrap(), b"a\xC3");
    assert_eq!(t.decode(&[7], false).unwrap(), b"\xA9");
    assert_eq!(t.decode(&[1, 9, 6, 7, 2, 999], true).unwrap(), " abé<tool>".as_bytes());
    assert_eq!(t.decode(&[1], false).unwrap(), b"<|end|>");
    assert!(t.table.get(1).unwrap().special && !t.table.get(2).unwrap().special);
    assert_eq!(t.table.len(), TOKENS.len());
}

#[test]
fn bad_specs_are_refused() {
    let refused = |change: &dyn Fn(&mut Spec<'static>)| {
        let mut s = spec();
        change(&mut s);
        let e = Tokenizer::from_bpe(&s).err().expect("must be refused");
        assert_eq!(e.code, INVALID_ARGUMENT, "{}", e.message);
    };
    refused(&|s| s.tokens.clear());
    refused(&|s| s.bos = Some(10));
    refused(&|s| s.bos = None);
    refused(&|s| s.add_eos = Some(true));
    refused(&|s| s.merges.push("ab"));
    refused(&|s| s.merges.push("x a"));
    refused(&|s| s.merges.push("b a"));
    refused(&|s| s.tokens[4] = "a");
}

fn sentence_json() -> String {
    serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [
            {"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
             "normalized": false, "special": true},
            {"id": 6, "content": "\n\n", "single_word": false, "lstrip": false, "rstrip": false,
             "normalized": false, "special": false}],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": null,
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
            "vocab": {"<s>": 0, "▁": 1, "a": 2, "▁a": 3, "<0xC3>": 4, "<0xA9>": 5},
            "merges": [["▁", "a"]]}
    })
    .to_string()
}

#[test]
fn a_tokenizer_json_with_byte_fallback() {
    let t = Tokenizer::from_json(sentence_json().as_bytes()).unwrap();
    assert_eq!(t.encode("a aé", true, true).unwrap(), [0, 3, 3, 4, 5]);
    assert_eq!(t.encode("<s>a\n\na", false, true).unwrap(), [0, 3, 6, 3]);
    assert!(!t.encode("<s>a", false, false).unwrap().contains(&0));
    assert_eq!(t.decode(&[0, 3, 3, 4], true).unwrap(), b"a a\xC3");
    assert_eq!(t.decode(&[5, 6], true).unwrap(), b"\xA9\n\n");
    assert_eq!(t.table.get(3).unwrap().bytes, b" a");
    assert!(t.table.get(7).is_none());
    assert_eq!(t.table.len(), 7);
}

#[test]
fn a_broken_json_is_refused() {
    for json in ["", "{}", "[", "{\"model\": 3}"] {
        let e = Tokenizer::from_json(json.as_bytes()).err().expect("must be refused");
        assert_eq!(e.code, INVALID_ARGUMENT);
        assert!(e.message.starts_with("tokenizer.json: "));
    }
}

#[test]
fn long_runs_take_linear_time() {
    let t = Tokenizer::from_bpe(&spec()).unwrap();
    for piece in [" ", "a", "\n", "!", "é"] {
        let text = piece.repeat(200_000);
        t.encode(&text, false, true).unwrap();
    }
}
