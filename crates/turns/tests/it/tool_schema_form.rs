//! The form in which tools are declared to Gemini: the newer one, and the older one for backends that do not know it.

use pretty_assertions::assert_eq;
use switchboard_chat::TurnStatus;
use switchboard_model::{
    Caller, Face, ProviderAuth, ProviderKind, ProviderPlan, Secret, ToolSchemaForm,
};
use switchboard_test_support::model_backends::{Backend, FakeBackends, Step};
use switchboard_turns::NewTurn;

use crate::lifecycle::{bench_with, said};

/// The field for what a tool takes in each request, where the first request with the newer one is refused.
async fn declared(tool_schema: ToolSchemaForm) -> Vec<(TurnStatus, Vec<&'static str>)> {
    let fakes = FakeBackends::start().await;
    if tool_schema != ToolSchemaForm::Parameters {
        let unknown = "Invalid JSON payload received. Unknown name \"parametersJsonSchema\" at \
                       'tools[0].function_declarations[0]': Cannot find field.";
        let body = serde_json::json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": unknown}});
        fakes.script(Backend::Gemini, [Step::new().status(400, &[], body.to_string())]);
    }
    fakes.script(Backend::Gemini, [Step::text("one"), Step::text("two")]);
    let bench = bench_with(vec![ProviderPlan {
        base_url: Some(fakes.root_url().parse().unwrap()),
        auth: ProviderAuth::ApiKey(Secret::new("key")),
        model: Some("gemini-2.5-flash".into()),
        tool_schema,
        ..ProviderPlan::new("google", ProviderKind::Gemini)
    }])
    .await;
    let mut seen = Vec::new();
    for text in ["first", "second"] {
        let before = fakes.requests().len();
        let turn = NewTurn { provider: Some("google".into()), ..said(None, text) };
        let turn =
            bench.turns.begin(&bench.session, Caller::local(Face::Http), turn).await.unwrap();
        let status = turn.ended().await.unwrap().status;
        let fields = fakes.requests().into_iter().skip(before).map(|request| {
            let declaration = &request.body["tools"][0]["functionDeclarations"][0];
            let fields = ["parametersJsonSchema", "parameters"];
            fields.into_iter().find(|field| declaration.get(field).is_some()).unwrap()
        });
        seen.push((status, fields.collect()));
    }
    bench.end().await;
    seen
}

#[tokio::test]
async fn tools_are_declared_in_the_older_form_to_a_backend_that_knows_no_other() {
    let (newer, older) = ("parametersJsonSchema", "parameters");
    let (done, failed) = (TurnStatus::Completed, TurnStatus::Failed);
    // Learned once, and then known.
    assert_eq!(
        declared(ToolSchemaForm::Auto).await,
        [(done, vec![newer, older]), (done, vec![older])]
    );
    assert_eq!(
        declared(ToolSchemaForm::Parameters).await,
        [(done, vec![older]), (done, vec![older])]
    );
    assert_eq!(
        declared(ToolSchemaForm::JsonSchema).await,
        [(failed, vec![newer]), (done, vec![newer])]
    );
}
