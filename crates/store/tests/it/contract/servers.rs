//! Tests of the remembered tools and eras of servers.

use std::collections::HashMap;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_model::{Era, JsonText, ServerName, ToolDescriptor};

use super::database::new_store;

#[tokio::test]
async fn a_list_is_replaced_whole_and_an_empty_one_is_no_absent_one() {
    let store = new_store().await;
    let (crm, bare, gone) =
        (ServerName::new("crm"), ServerName::new("bare"), ServerName::new("gone"));
    let tools =
        |names: &[&str]| names.iter().map(|name| ToolDescriptor::named(*name)).collect::<Vec<_>>();
    assert_eq!(store.remembered_tools().await.unwrap(), HashMap::new());

    store.remember_tools(&crm, &tools(&["z", "a", "m", "a"]), 1).await.unwrap();
    store.remember_tools(&bare, &[], 1).await.unwrap();
    store.remember_tools(&gone, &tools(&["x"]), 1).await.unwrap();
    let wanted = |crm_tools: &[&str]| {
        HashMap::from([
            (crm.clone(), tools(crm_tools)),
            (bare.clone(), vec![]),
            (gone.clone(), tools(&["x"])),
        ])
    };
    assert_eq!(store.remembered_tools().await.unwrap(), wanted(&["z", "a", "m", "a"]));

    store.remember_tools(&crm, &tools(&["b"]), 2).await.unwrap();
    assert_eq!(store.remembered_tools().await.unwrap(), wanted(&["b"]));
    store.remember_tools(&crm, &[], 3).await.unwrap();
    assert_eq!(store.remembered_tools().await.unwrap(), wanted(&[]));

    store.forget_server(&gone).await.unwrap();
    store.forget_server(&gone).await.unwrap();
    assert!(!store.remembered_tools().await.unwrap().contains_key(&gone));
    store.remember_tools(&gone, &[], 4).await.unwrap();
    assert_eq!(
        store.remembered_tools().await.unwrap()[&gone],
        [],
        "its old tools do not come back"
    );
}

#[tokio::test]
async fn a_descriptor_keeps_the_order_of_its_keys_and_null_is_not_nothing() {
    let store = new_store().await;
    let crm = ServerName::new("crm");
    let tool = ToolDescriptor {
        title: Some(String::new()),
        description: None,
        input_schema: JsonText::from(
            &json!({"z": 1, "a": {"y": 0.1, "b": [1e300, -0.0]}, "m": u64::MAX}),
        ),
        output_schema: Some(JsonText::from(&Value::Null)),
        annotations: Some(JsonText::from(&json!({"readOnlyHint": true}))),
        extra: Some(JsonText::from(&json!({"icons": [], "_meta": {"k": null}}))),
        ..ToolDescriptor::named("find")
    };
    store.remember_tools(&crm, std::slice::from_ref(&tool), 1).await.unwrap();
    let read = store.remembered_tools().await.unwrap().remove(&crm).unwrap();
    assert_eq!(read, std::slice::from_ref(&tool));
    assert_eq!(read[0].input_schema.parse(), tool.input_schema.parse());
}

#[tokio::test]
async fn an_era_holds_for_one_place_and_for_a_time() {
    let store = new_store().await;
    let crm = ServerName::new("crm");
    let era = async |place: &str, since| store.remembered_era(&crm, place, since).await.unwrap();
    assert_eq!(era("here", 0).await, None);
    store.remember_era(&crm, "here", Era::Legacy, 100).await.unwrap();
    assert_eq!(era("here", 100).await, Some(Era::Legacy));
    assert_eq!(era("here", 101).await, None);
    assert_eq!(era("there", 0).await, None);
    store.remember_era(&crm, "there", Era::Modern, 200).await.unwrap();
    assert_eq!((era("here", 0).await, era("there", 0).await), (None, Some(Era::Modern)));
    store.forget_server(&crm).await.unwrap();
    assert_eq!(era("there", 0).await, None);
}
