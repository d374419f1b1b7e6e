//! The keywords of JSON Schema: their values and which providers accept them.

use serde_json::Value;

/// How much of JSON Schema a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vocabulary {
    /// JSON Schema 2020-12 except for variants at the root: Anthropic.
    Full,
    /// The keywords that all JSON Schema providers accept.
    Portable,
    /// The `Schema` of Gemini's `parameters`; converted from the portable form.
    Subset,
}

/// The kind of value that a keyword has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeywordKind {
    /// Text for people and models.
    Prose,
    /// A string with a technical meaning, such as a format.
    Word,
    Pattern,
    Type,
    Enum,
    Const,
    Properties,
    Required,
    /// A schema for a part of the value.
    Schema,
    /// A schema for the value itself.
    SameSchema,
    /// A schema, or a boolean that is passed on as a boolean.
    SchemaOrFlag,
    /// Schemas for the value itself.
    SameSchemas,
    /// Schemas for parts of the value.
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

/// The kind of a keyword; `None` for one that has no meaning to a model.
pub(crate) fn kind_of(keyword: &str) -> Option<KeywordKind> {
    Some(match keyword {
        "title" | "description" => KeywordKind::Prose,
        "format" | "contentEncoding" | "contentMediaType" => KeywordKind::Word,
        "pattern" => KeywordKind::Pattern,
        "type" => KeywordKind::Type,
        "enum" => KeywordKind::Enum,
        "const" => KeywordKind::Const,
        "properties" => KeywordKind::Properties,
        "required" => KeywordKind::Required,
        "items" | "contains" | "propertyNames" | "contentSchema" => KeywordKind::Schema,
        "not" | "if" | "then" | "else" => KeywordKind::SameSchema,
        "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" => {
            KeywordKind::SchemaOrFlag
        }
        "anyOf" | "oneOf" | "allOf" => KeywordKind::SameSchemas,
        "prefixItems" => KeywordKind::Schemas,
        "patternProperties" => KeywordKind::SchemaMap,
        "dependentSchemas" => KeywordKind::SameSchemaMap,
        "dependentRequired" => KeywordKind::NamesMap,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            KeywordKind::Number
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => KeywordKind::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => KeywordKind::Flag,
        "examples" => KeywordKind::List,
        "default" => KeywordKind::Anything,
        _ => return None,
    })
}

/// Keywords that are processed before the conversion or only identify schemas; dropping them loses nothing.
pub(crate) fn is_plumbing(keyword: &str) -> bool {
    matches!(keyword, "$defs" | "definitions" | "$anchor" | "$dynamicAnchor" | "$vocabulary")
}

/// Keywords that describe a value and do not restrict it.
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

/// Whether the value is valid for its keyword. Subschemas are checked when they are converted.
pub(crate) fn is_well_formed(keyword: &str, kind: KeywordKind, value: &Value) -> bool {
    match kind {
        KeywordKind::Prose | KeywordKind::Word => value.is_string(),
        KeywordKind::Pattern => {
            value.as_str().is_some_and(|pattern| fancy_regex::Expr::parse_tree(pattern).is_ok())
        }
        KeywordKind::Enum => value.as_array().is_some_and(|values| !values.is_empty()),
        KeywordKind::Type | KeywordKind::Const | KeywordKind::Anything => true,
        KeywordKind::Properties
        | KeywordKind::SchemaMap
        | KeywordKind::SameSchemaMap
        | KeywordKind::NamesMap => value.is_object(),
        KeywordKind::Required | KeywordKind::List => value.is_array(),
        KeywordKind::Schema | KeywordKind::SameSchema | KeywordKind::SchemaOrFlag => {
            value.is_object() || value.is_boolean()
        }
        KeywordKind::SameSchemas | KeywordKind::Schemas => {
            value.as_array().is_some_and(|schemas| !schemas.is_empty())
        }
        KeywordKind::Number => {
            value.as_f64().is_some_and(|number| keyword != "multipleOf" || number > 0.0)
        }
        KeywordKind::Count => value.is_u64(),
        KeywordKind::Flag => value.is_boolean(),
    }
}

/// The JSON Schema name of a type; common other names are mapped.
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
