//! Tags of Hugging Face's Jinja that the template engine does not have.

use std::borrow::Cow;

/// `{% generation %} ... {% endgeneration %}` marks what an assistant said, for training; rendering ignores
/// the marks. They become a condition that holds, which keeps white space and line numbers as they are.
pub fn without_generation_tags(template: &str) -> Cow<'_, str> {
    if !template.contains("generation") {
        return Cow::Borrowed(template);
    }
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find("{%") {
        let (before, tag_on) = rest.split_at(start + 2);
        out.push_str(before);
        let Some(end) = tag_on.find("%}") else {
            rest = tag_on;
            break;
        };
        let tag = &tag_on[..end];
        let word = tag.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        match word {
            "generation" => out.push_str(&tag.replace(word, "if true")),
            "endgeneration" => out.push_str(&tag.replace(word, "endif")),
            _ => out.push_str(tag),
        }
        rest = &tag_on[end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::without_generation_tags;

    #[test]
    fn only_the_tags_change() {
        let t = "{%- generation -%} generation {% if add_generation_prompt %}{% endgeneration %}{% open";
        let want = "{%- if true -%} generation {% if add_generation_prompt %}{% endif %}{% open";
        assert_eq!(without_generation_tags(t), want);
    }
}
