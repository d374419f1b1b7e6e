//! The words of JSON Schema, what their values must look like, and who takes them.

use serde_json::Value;

/// How much of JSON Schema a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vocabulary {
    /// JSON Schema 2020-12 but for its root: Anthropic.
    Full,
    /// What every provider of JSON Schema takes.
    Portable,
    /// The `Schema` of Gemini's `parameters`. Made from the portable form.
    Subset,
}

/// What the value of a keyword is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text for people and models.
    Prose,
    /// A word for programs.
    Word,
    Pattern,
    Type,
    Enum,
    Const,
    Properties,
    Required,
    /// A schema, of another instance than the one at hand.
    Schema,
    /// A schema of the same instance.
    SameSchema,
    /// A schema or a boolean that is no schema in disguise.
    SchemaOrFlag,
    /// Schemas of the same instance.
    SameSchemas,
    /// Schemas of other instances.
    Schemas,
    SchemaMap,
    SameSchemaMap,
    NamesMap,
    Number,
    Count,
    Flag,
    List,
    Anything,
}

/// The kind of a keyword, or `None` for one that says nothing to a model.
pub(crate) fn kind_of(keyword: &str) -> Option<Kind> {
    Some(match keyword {
        "title" | "description" => Kind::Prose,
        "format" | "contentEncoding" | "contentMediaType" => Kind::Word,
        "pattern" => Kind::Pattern,
        "type" => Kind::Type,
        "enum" => Kind::Enum,
        "const" => Kind::Const,
        "properties" => Kind::Properties,
        "required" => Kind::Required,
        "items" | "contains" | "propertyNames" | "contentSchema" => Kind::Schema,
        "not" | "if" | "then" | "else" => Kind::SameSchema,
        "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" => Kind::SchemaOrFlag,
        "anyOf" | "oneOf" | "allOf" => Kind::SameSchemas,
        "prefixItems" => Kind::Schemas,
        "patternProperties" => Kind::SchemaMap,
        "dependentSchemas" => Kind::SameSchemaMap,
        "dependentRequired" => Kind::NamesMap,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            Kind::Number
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => Kind::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Kind::Flag,
        "examples" => Kind::List,
        "default" => Kind::Anything,
        _ => return None,
    })
}

/// Keywords that are read before the walk or only help to find others; nothing is lost with them.
pub(crate) fn is_plumbing(keyword: &str) -> bool {
    matches!(keyword, "$defs" | "definitions" | "$anchor" | "$dynamicAnchor" | "$vocabulary")
}

/// Keywords that tell something and decide nothing.
pub(crate) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title"
            | "description"
            | "default"
            | "examples"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "contentEncoding"
            | "contentMediaType"
            | "contentSchema"
    )
}

impl Vocabulary {
    pub(crate) fn keeps(self, keyword: &str) -> bool {
        match self {
            Self::Full => true,
            Self::Portable | Self::Subset => !matches!(
                keyword,
                "not"
                    | "if"
                    | "then"
                    | "else"
                    | "contains"
                    | "minContains"
                    | "maxContains"
                    | "propertyNames"
                    | "contentSchema"
                    | "contentEncoding"
                    | "contentMediaType"
                    | "unevaluatedProperties"
                    | "unevaluatedItems"
                    | "patternProperties"
                    | "dependentSchemas"
                    | "dependentRequired"
                    | "deprecated"
                    | "readOnly"
                    | "writeOnly"
                    | "examples"
            ),
        }
    }
}

/// Whether a value is one that the keyword may have. Schemas are looked at when they are walked.
pub(crate) fn is_well_formed(keyword: &str, kind: Kind, value: &Value) -> bool {
    match kind {
        Kind::Prose | Kind::Word => value.is_string(),
        Kind::Pattern => {
            value.as_str().is_some_and(|pattern| fancy_regex::Expr::parse_tree(pattern).is_ok())
        }
        Kind::Enum => value.as_array().is_some_and(|values| !values.is_empty()),
        Kind::Type | Kind::Const | Kind::Anything => true,
        Kind::Properties | Kind::SchemaMap | Kind::SameSchemaMap | Kind::NamesMap => {
            value.is_object()
        }
        Kind::Required | Kind::List => value.is_array(),
        Kind::Schema | Kind::SameSchema | Kind::SchemaOrFlag => {
            value.is_object() || value.is_boolean()
        }
        Kind::SameSchemas | Kind::Schemas => {
            value.as_array().is_some_and(|schemas| !schemas.is_empty())
        }
        Kind::Number => {
            value.as_f64().is_some_and(|number| keyword != "multipleOf" || number > 0.0)
        }
        Kind::Count => value.is_u64(),
        Kind::Flag => value.is_boolean(),
    }
}

/// The seven types, and the names that people write instead.
pub(crate) fn type_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "string" | "str" | "STRING" => "string",
        "number" | "float" | "double" | "NUMBER" => "number",
        "integer" | "int" | "INTEGER" => "integer",
        "boolean" | "bool" | "BOOLEAN" => "boolean",
        "object" | "dict" | "OBJECT" => "object",
        "array" | "list" | "ARRAY" => "array",
        "null" | "NULL" => "null",
        _ => return None,
    })
}
