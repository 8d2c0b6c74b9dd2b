use super::render;
use crate::boundary::{INTERNAL, INVALID_ARGUMENT};

fn ok(template: &str, context: &str) -> String {
    String::from_utf8(render(template, context).expect("renders")).expect("UTF-8")
}

fn error(template: &str, context: &str) -> String {
    let e = render(template, context).expect_err("must fail");
    assert_eq!(e.code, INVALID_ARGUMENT, "{}", e.message);
    e.message
}

#[test]
fn a_chat_in_order_with_blocks_trimmed() {
    let template = "{% for m in messages %}\n    {% if m.role == 'user' %}\nU {{ m['content'].strip() }}\n    {% else %}\nA {{ m.content }}\n    {% endif %}\n{% endfor %}\n{{ bos_token }}{% if add_generation_prompt %}>{% endif %}\n";
    let context = r#"{"messages":[{"role":"user","content":" hi "},{"role":"assistant","content":"<b>"}],
        "bos_token":"<s>","add_generation_prompt":true}"#;
    assert_eq!(ok(template, context), "U hi\nA <b>\n<s>>");
}

#[test]
fn variables_that_python_always_passes() {
    assert_eq!(ok("{{ tools is none }} {{ documents is none }} {{ add_generation_prompt }}", "{}"), "True True False");
    assert_eq!(ok("{{ nothing }}|{{ nothing is defined }}", "{}"), "|False");
}

#[test]
fn tojson_keeps_order_and_escapes_no_html() {
    let context = r#"{"t":{"z":"<&'é>","a":[1,2.5,true,null]}}"#;
    assert_eq!(ok("{{ t|tojson }}", context), r#"{"z": "<&'é>", "a": [1, 2.5, true, null]}"#);
    assert_eq!(ok("{{ t.a|tojson(indent=2) }}", context), "[\n  1,\n  2.5,\n  true,\n  null\n]");
    assert_eq!(ok("{{ t.a|tojson(separators=(',', ':')) }}", context), "[1,2.5,true,null]");
}

#[test]
fn python_methods_loop_controls_and_generation() {
    let template = "{%- for k, v in d.items() if k != 'x' -%}{%- if v > 2 %}{% break %}{% endif -%}{{ k.upper() }}{{ v }}{%- endfor -%}";
    assert_eq!(ok(template, r#"{"d":{"x":0,"b":1,"a":2,"c":3}}"#), "B1A2");
    assert_eq!(ok("{% generation %}said{% endgeneration %}", "{}"), "said");
    assert_eq!(ok("{% set n = namespace(i=0) %}{% for x in [1,2] %}{% set n.i = n.i + x %}{% endfor %}{{ n.i }}", "{}"), "3");
    assert_eq!(ok("{{ 'a<think>b'.split('<think>')[-1] }}{{ [1,2,3][::-1] }}", "{}"), "b[3, 2, 1]");
}

#[test]
fn the_clock_can_be_set() {
    assert_eq!(ok("{{ strftime_now('%d %b %Y') }}", r#"{"__now":1735689599}"#), "31 Dec 2024");
    assert!(error("{{ strftime_now('%Y') }}", r#"{"__now":"soon"}"#).contains("__now"));
}

#[test]
fn errors_name_the_line_and_the_reason() {
    let raised = error("a\nb\n{{ raise_exception('Roles must alternate') }}", "{}");
    assert_eq!(raised, "chat template, line 3: Roles must alternate");
    assert!(error("\n{% for %}", "{}").starts_with("chat template, line 2: syntax error"));
    assert!(error("{{ x }}", "[1]").contains("not a JSON object"));
    assert!(error("{{ x.y.z }}", "{}").contains("line 1"));
}

#[test]
fn a_hostile_template_ends() {
    let endless = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    assert!(error(endless, "{}").contains("fuel"), "{}", error(endless, "{}"));
    let loud = "{% for a in range(100000) %}{{ x }}{% endfor %}";
    let context = format!(r#"{{"x":"{}"}}"#, "y".repeat(1000));
    assert!(error(loud, &context).contains("output"), "{}", error(loud, &context));
    error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{}");
    error(&"{% if x %}".repeat(100_000), "{}");
    error(&format!("{{{{ {}1 }}}}", "(".repeat(100_000)), "{}");
    let context = format!(r#"{{"x":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    error("{{ x }}", &context);
}

#[test]
fn deep_values_do_not_overflow_the_stack() {
    let deep = "{% set n = namespace(x=[]) %}{% for a in range(100000) %}{% set n.x = [n.x] %}{% endfor %}";
    assert_eq!(ok(deep, "{}"), "");
    assert!(error(&format!("{deep}{{{{ n.x }}}}"), "{}").contains("too deeply"));
    assert!(error(&format!("{deep}{{{{ n.x|tojson }}}}"), "{}").contains("too deeply"));
    // The library's own walk.
    assert_ne!(render(&format!("{deep}{{{{ (n.x ~ '')|length }}}}"), "{}").err().map(|e| e.code), Some(INTERNAL));
}
