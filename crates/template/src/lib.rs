//! Text templates of the configuration: Jinja syntax, with a bound on their size, steps and output, so that no template
//! stops a call.

use std::collections::BTreeSet;
use std::io::{self, Write};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};
use serde::Serialize;

/// The name of the only template of an environment.
const NAME: &str = "template";
/// Maximum number of steps of one rendering. A list of a thousand tools takes about a tenth.
const FUEL: u64 = 1_000_000;
/// Maximum size of a rendered text.
const MAX_OUTPUT: usize = 4 << 20;
/// Maximum size of a template.
const MAX_TEMPLATE: usize = 256 << 10;

/// A compiled template.
#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
}

/// Why a template cannot be compiled or rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct TemplateFault {
    pub message: String,
    /// The line of the template, counted from 1.
    pub line: Option<usize>,
    /// Whether the template was stopped because it runs for too long or writes too much.
    pub is_endless: bool,
}

impl Template {
    /// Compiles a template. An unknown variable, filter or function is an error when it is rendered.
    pub fn compile(text: &str) -> Result<Self, TemplateFault> {
        if text.len() > MAX_TEMPLATE {
            let most = MAX_TEMPLATE >> 10;
            return Err(TemplateFault::new(format!("the template is larger than {most} KiB")));
        }
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| TemplateFault::from(&error))?);
        environment
            .add_template_owned(NAME, text.to_owned())
            .map_err(|error| TemplateFault::from(&error))?;
        Ok(Self { environment })
    }

    /// The variables that the template reads and does not set itself.
    pub fn variables(&self) -> BTreeSet<String> {
        let Ok(template) = self.environment.get_template(NAME) else { return BTreeSet::new() };
        let globals: BTreeSet<_> =
            self.environment.globals().map(|(name, _)| name.to_owned()).collect();
        let read = template.undeclared_variables(false);
        read.into_iter().filter(|name| !globals.contains(name)).collect()
    }

    /// Renders the template. Equal variables give equal bytes. Leading and trailing space is removed.
    pub fn render(&self, variables: &impl Serialize) -> Result<String, TemplateFault> {
        let template = self.environment.get_template(NAME).map_err(|e| TemplateFault::from(&e))?;
        let mut output = BoundedOutput::default();
        let variables = Value::from(Serde(variables));
        let rendered = template.render_captured_to(variables, &mut output).map(drop);
        if output.is_full {
            let most = MAX_OUTPUT >> 20;
            return Err(TemplateFault {
                is_endless: true,
                ..TemplateFault::new(format!("the rendered text is larger than {most} MiB"))
            });
        }
        rendered.map_err(|error| TemplateFault::from(&error))?;
        let text = String::from_utf8(output.bytes)
            .map_err(|_| TemplateFault::new("the rendered text is not valid UTF-8".into()))?;
        Ok(text.trim().to_owned())
    }
}

impl TemplateFault {
    fn new(message: String) -> Self {
        Self { message, line: None, is_endless: false }
    }
}

impl From<&Error> for TemplateFault {
    fn from(error: &Error) -> Self {
        // `range` refuses by itself what would use up the steps.
        let is_endless = error.kind() == ErrorKind::OutOfFuel
            || error.detail().is_some_and(|detail| detail.contains("too many elements"));
        let message = match error.kind() {
            ErrorKind::OutOfFuel => {
                format!("the template does not end: it was stopped after {FUEL} steps")
            }
            kind => match error.detail() {
                Some(detail) => format!("{kind}: {detail}"),
                None => kind.to_string(),
            },
        };
        Self { message, line: error.line(), is_endless }
    }
}

/// Collects the output up to its maximum size.
#[derive(Default)]
struct BoundedOutput {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT {
            self.is_full = true;
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    #[track_caller]
    fn check(text: &str, variables: &Json, expected: &str) {
        let rendered = Template::compile(text).and_then(|template| template.render(variables));
        assert_eq!(rendered.unwrap_or_else(|fault| format!("fault: {fault}")), expected);
    }

    #[test]
    fn templates_render_or_say_what_is_wrong() {
        check("Hello {{ name }}!\n", &json!({"name": "Ann"}), "Hello Ann!");
        check("{% for x in xs %}\n- {{ x }}\n{% endfor %}", &json!({"xs": [1, 2]}), "- 1\n- 2");
        check(
            "{{ a",
            &json!({}),
            "fault: line 1: syntax error: unexpected end of input, expected end of variable block",
        );
        check("\n{{ nope }}", &json!({}), "fault: line 2: undefined value: `nope` is undefined");
        check(
            "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
            &json!({}),
            "fault: line 1: the template does not end: it was stopped after 1000000 steps",
        );
        check(
            "{% for i in range(9000) %}{{ x }}{% endfor %}",
            &json!({"x": "0123456789".repeat(100)}),
            "fault: the rendered text is larger than 4 MiB",
        );
        let large = "x".repeat(MAX_TEMPLATE + 1);
        check(&large, &json!({}), "fault: the template is larger than 256 KiB");
    }

    #[test]
    fn a_template_that_never_ends_is_told_from_one_that_lacks_a_value() {
        for (text, expected) in [
            ("{% for i in range(100000000) %}x{% endfor %}", true),
            (
                "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                true,
            ),
            ("{{ nope }}", false),
        ] {
            let fault = Template::compile(text).unwrap().render(&json!({})).unwrap_err();
            assert_eq!(fault.is_endless, expected, "{fault}");
        }
    }

    #[test]
    fn the_variables_of_a_template_are_those_that_it_reads() {
        let text =
            "{{ a.b }}{% for x in xs %}{{ x }}{% endfor %}{% set y = 1 %}{{ y }}{{ range(3) }}";
        let variables = Template::compile(text).unwrap().variables();
        assert_eq!(variables.into_iter().collect::<Vec<_>>(), ["a", "xs"]);
    }
}
