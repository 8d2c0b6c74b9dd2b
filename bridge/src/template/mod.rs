//! Chat templates: Jinja as Hugging Face's `apply_chat_template` runs it.
//!
//! Templates come with model files, so they are untrusted. A render has a budget of instructions (`FUEL`), of
//! nesting and of output. It runs on a thread of its own with a large stack, because a template can build
//! values as deep as its budget allows, and the library walks values by recursion.
//! What is not bounded is the size of one intermediate text (a text doubled 40 times in `set`).

mod python;
mod syntax;
mod time;

use crate::boundary::{out, status, text, Buf, Error, Result};
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, ErrorKind};
use std::io::Write;

/// Instructions; a chat of 1,000 messages takes about 100,000.
const FUEL: u64 = 3_000_000;
const RECURSION_LIMIT: usize = 200;
const OUTPUT_LIMIT: usize = 16 << 20;
const TEMPLATE_LIMIT: usize = 4 << 20;
/// Address space; only what is touched costs memory.
const STACK_BYTES: usize = 512 << 20;

const NAME: &str = "chat_template";

type Context = serde_json::Map<String, serde_json::Value>;

/// Collects output up to the limit.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_LIMIT {
            return Err(std::io::Error::other(format!("the output exceeds {OUTPUT_LIMIT} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub fn render(template: &str, context: &str) -> Result<Vec<u8>> {
    if template.len() > TEMPLATE_LIMIT {
        return Err(Error::invalid(format!("the chat template exceeds {TEMPLATE_LIMIT} bytes")));
    }
    let mut context: Context = serde_json::from_str(context)
        .map_err(|e| Error::invalid(format!("the context of the chat template is not a JSON object: {e}")))?;
    // Python passes these always; templates rely on `tools is none`.
    for name in ["tools", "documents"] {
        context.entry(name).or_insert(serde_json::Value::Null);
    }
    context.entry("add_generation_prompt").or_insert(serde_json::Value::Bool(false));

    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("dw-template".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || render_here(template, context))
            .map_err(|e| Error::internal(format!("no thread for the chat template: {e}")))?
            .join()
            .unwrap_or_else(|_| Err(Error::internal("the template engine panicked")))
    })
}

fn render_here(template: &str, context: Context) -> Result<Vec<u8>> {
    let source = syntax::without_generation_tags(template);
    let mut env = environment(time::Clock::of(context.get("__now"))?);
    env.add_template(NAME, &source).map_err(|e| described(&e))?;
    let template = env.get_template(NAME).map_err(|e| described(&e))?;
    let mut output = Bounded(Vec::new());
    template.render_captured_to(context, &mut output).map_err(|e| described(&e))?;
    Ok(output.0)
}

fn environment<'a>(clock: time::Clock) -> Environment<'a> {
    let mut env = Environment::new();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_keep_trailing_newline(false);
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    env.set_fuel(Some(FUEL));
    env.set_recursion_limit(RECURSION_LIMIT);
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env.set_formatter(|output, _, value| {
        output.write_str(&python::text(value)?)?;
        Ok(())
    });
    env.add_filter("tojson", tojson);
    env.add_filter("string", |value: Value| python::text(&value));
    env.add_function("raise_exception", |message: Value| -> std::result::Result<Value, minijinja::Error> {
        Err(minijinja::Error::new(ErrorKind::InvalidOperation, message.to_string()))
    });
    env.add_function("strftime_now", move |format: &str| clock.format(format));
    env
}

fn tojson(value: Value, options: Kwargs) -> std::result::Result<Value, minijinja::Error> {
    let separators: Option<Vec<String>> = options.get("separators")?;
    let style = python::JsonStyle {
        indent: options.get("indent")?,
        ensure_ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        separators: match separators.as_deref() {
            None => None,
            Some([item, key]) => Some((item.clone(), key.clone())),
            Some(_) => return Err(minijinja::Error::new(ErrorKind::InvalidOperation, "separators: two texts")),
        },
    };
    options.assert_all_used()?;
    python::json(&value, &style).map(Value::from)
}

/// One line for a person: where, what, and why.
fn described(e: &minijinja::Error) -> Error {
    let mut message = "chat template".to_string();
    if let Some(line) = e.line() {
        message += &format!(", line {line}");
    }
    match (e.kind(), e.detail()) {
        (ErrorKind::InvalidOperation, Some(detail)) => message += &format!(": {detail}"),
        (kind, Some(detail)) => message += &format!(": {kind}: {detail}"),
        (kind, None) => message += &format!(": {kind}"),
    }
    let mut source = std::error::Error::source(e);
    while let Some(cause) = source {
        message += &format!(": {cause}");
        source = cause.source();
    }
    Error::invalid(message)
}

#[no_mangle]
pub unsafe extern "C" fn dwb_template_render(
    template: *const u8,
    template_len: usize,
    context: *const u8,
    context_len: usize,
    output: *mut Buf,
    err: *mut Buf,
) -> i32 {
    unsafe {
        status(err, || {
            let output = out(output, "out")?;
            let template = text(template, template_len, "the chat template")?;
            output.replace(render(template, text(context, context_len, "the context")?)?);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
