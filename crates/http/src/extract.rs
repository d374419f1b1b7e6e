//! Extractors of the handlers. A request that cannot be parsed gets a problem response, never axum's plain text.

use std::fmt;
use std::marker::PhantomData;

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};

use crate::problem::ProblemResponse;

/// The request body as a JSON object.
#[derive(Debug)]
pub(crate) struct FromBody<T>(pub(crate) T);

/// The parameters in the path.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(ProblemResponse))]
pub(crate) struct FromPath<T>(pub(crate) T);

/// The parameters in the query.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ProblemResponse))]
pub(crate) struct FromQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for FromBody<T> {
    type Rejection = ProblemResponse;

    async fn from_request(request: Request, state: &S) -> Result<Self, ProblemResponse> {
        let Json(ObjectOnly(body)) = Json::from_request(request, state).await?;
        Ok(Self(body))
    }
}

/// Accepts only a JSON object. Serde would also read a struct from an array, field by field, so that `[]` would pass for
/// an object whose fields all have defaults.
struct ObjectOnly<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectOnly<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = ObjectOnly<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(ObjectOnly)
            }
        }

        deserializer.deserialize_map(Members(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use switchboard_api::NewSession;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<Option<&str>, &str>) {
        let read = serde_json::from_str(text).map(|ObjectOnly::<NewSession>(body)| body.id);
        let read = read.map_err(|error| error.to_string());
        let expected = expected.map(|id| id.map(str::to_owned)).map_err(str::to_owned);
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn a_body_is_an_object_and_nothing_else() {
        check("{}", Ok(None));
        check(r#"{"id": "work"}"#, Ok(Some("work")));
        check(r#"{"id": null}"#, Ok(None));
        check("[]", Err("invalid type: sequence, expected an object at line 1 column 0"));
        check(r#"["work"]"#, Err("invalid type: sequence, expected an object at line 1 column 0"));
        check("null", Err("invalid type: null, expected an object at line 1 column 4"));
        check(
            r#"{"ID": "work"}"#,
            Err(
                "unknown field `ID`, expected one of `id`, `title`, `provider`, `model`, `credential`, `strategy`, `servers`, `toolsets`, `tools`, `allow`, `own_servers` at line 1 column 5",
            ),
        );
    }
}
