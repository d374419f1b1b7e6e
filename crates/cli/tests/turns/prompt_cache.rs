//! What a provider has cached of an app's conversation stays valid: the bytes before the session's tools, the tools, and
//! all earlier rounds are the same in each request.

use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashMap;
use switchboard_test_support::model_backends::Step;

use crate::app::Dialect;
use crate::lab::Lab;

/// The mark that Anthropic's API takes on the last part that is to be cached. It is no part of what is cached.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// A request to the provider, as text.
struct Sent {
    tools: String,
    /// Everything else that stands before the conversation.
    head: Vec<(String, String)>,
    /// The conversation without its closing bracket.
    said: String,
}

impl Sent {
    fn of(dialect: Dialect, text: &str) -> Self {
        let mut members: HashMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap();
        let mut take = |name: &str| {
            let taken = members.remove(name).map(|value| value.get().replace(MARK, ""));
            taken.unwrap_or_default()
        };
        let (tools, said) = (take("tools"), take(dialect.conversation()));
        let said = said.strip_suffix(']').unwrap().to_owned();
        // The limit of the output is what is left of it.
        take("max_tokens");
        let mut head: Vec<_> =
            members.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect();
        head.sort();
        Self { tools, head, said }
    }
}

#[tokio::test]
async fn earlier_bytes_stay_the_same_in_all_rounds_and_requests() {
    let lab = Lab::open().await;
    for dialect in Dialect::ALL {
        earlier_bytes_stay(&lab, dialect).await;
        lab.is_clean();
    }
}

async fn earlier_bytes_stay(lab: &Lab, dialect: Dialect) {
    let own = dialect.tool("weather");
    let more = match dialect {
        Dialect::Responses => {
            r#""instructions": "Be  kind", "prompt_cache_key":"k", "include":["reasoning.encrypted_content"],"#
        }
        Dialect::Chat => r#""temperature": 0.50,"#,
        Dialect::Messages => {
            r#""system": [{"type":"text","text":"Be  kind", "cache_control": {"type":"ephemeral"}}],"#
        }
        Dialect::Gemini => r#""systemInstruction": {"parts":[{"text":"Be  kind"}]},"#,
    };
    let more = format!(r#"{more} "tools": {},"#, dialect.tools(std::slice::from_ref(&own)));
    let find = |word: &str| Step::new().call("shop__find", json!({"q": word}));
    let both = Step::text("Wait.")
        .call("weather", json!({"city": "Oslo"}))
        .call("shop__price", json!({"q": "milk"}));
    let steps =
        [find("tea"), find("milk"), Step::text("Tea."), both, find("ice"), Step::text("Ice.")];
    lab.fake.script(dialect.account().backend, steps);

    let mut conversation = vec![dialect.said("hi")];
    let first = lab.ask_whole(dialect, dialect.request(&conversation, &more, false)).await.body();
    conversation.extend(dialect.reply(&first));
    conversation.push(dialect.said("and now?"));
    let second = lab.ask_whole(dialect, dialect.request(&conversation, &more, false)).await.body();
    let calls = dialect.calls(&second);
    let [(name, id)] = calls.as_slice() else { panic!("{dialect:?}: {calls:?}") };
    conversation.extend(dialect.reply(&second));
    conversation.push(dialect.result(name, id, "rain"));
    lab.ask_whole(dialect, dialect.request(&conversation, &more, false)).await.body();

    let sent: Vec<_> =
        lab.bodies(dialect.account()).iter().map(|each| Sent::of(dialect, &each.text)).collect();
    assert_eq!(sent.len(), 6, "{dialect:?}");
    let begins = dialect.tools(&[own]);
    let begins = begins.trim_end_matches([']', '}']);
    for (number, pair) in sent.windows(2).enumerate() {
        let [before, after] = pair else { unreachable!("windows of two") };
        assert!(before.tools.starts_with(begins), "{dialect:?}: {}", before.tools);
        assert!(before.tools.len() > begins.len() + 100, "{dialect:?}: {}", before.tools);
        assert_eq!(before.tools, after.tools, "{dialect:?}, request {number}");
        assert_eq!(before.head, after.head, "{dialect:?}, request {number}");
        assert!(
            after.said.starts_with(&before.said),
            "{dialect:?}, request {number}:\n{}\n{}",
            before.said,
            after.said
        );
    }
}
