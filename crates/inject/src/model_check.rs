//! The content check before the model of an app is asked.

use std::sync::Arc;

use switchboard_model::{CheckHook, CheckMode};
use switchboard_runtime::{
    CheckInput, CheckSubject, CheckedConversation, CheckedMessage, CheckedRole,
};
use switchboard_sessions::{Session, SessionService};
use switchboard_splice::{ConversationText, InjectedTurn, Refusal, RefusalKind, TextAuthor};

/// Whether the configuration asks for a check.
pub(crate) fn is_wanted(sessions: &SessionService) -> bool {
    sessions.board().plan().threat_protection.before_model != CheckMode::Off
}

/// Waits for the verdict about a conversation.
pub(crate) async fn pass(
    sessions: &SessionService,
    session: &Session,
    id: &str,
    texts: &[ConversationText],
) -> Result<(), Refusal> {
    let board = sessions.board();
    let plan = board.plan();
    let mode = plan.threat_protection.before_model;
    let new = texts.iter().rposition(|text| text.is_reply).map_or(0, |last| last + 1);
    let (context, content) = texts.split_at(new);
    let input = CheckInput {
        hook: CheckHook::BeforeModel,
        conversation: session.id.to_string(),
        message: id.to_owned(),
        user_message: last_of_user(texts),
        context: context.iter().map(message).collect(),
        content: content.iter().map(message).collect(),
    };
    let subject = CheckSubject {
        principal: Some(session.owner.clone()),
        session: Some(session.id.clone()),
        tool: None,
    };
    board.check_content(&plan, mode, subject, input).await.map_err(|blocked| {
        let text = format!("nothing was sent to the model: {blocked}");
        Refusal::new(RefusalKind::Forbidden, text)
    })
}

/// The conversation for checks of calls, if there is anything that checks them.
pub(crate) fn conversation(
    sessions: &SessionService,
    id: &str,
    turn: &InjectedTurn,
) -> Option<Arc<CheckedConversation>> {
    sessions.board().plan().threat_protection.endpoint.as_ref()?;
    let texts = turn.conversation_texts();
    Some(Arc::new(CheckedConversation {
        message: id.to_owned(),
        user_message: last_of_user(&texts),
        messages: texts.iter().map(message).collect(),
    }))
}

fn last_of_user(texts: &[ConversationText]) -> String {
    let last = texts.iter().rev().find(|text| text.author == TextAuthor::User);
    last.map(|text| text.text.clone()).unwrap_or_default()
}

fn message(text: &ConversationText) -> CheckedMessage {
    let role = match text.author {
        TextAuthor::System => CheckedRole::System,
        TextAuthor::User => CheckedRole::User,
        TextAuthor::Assistant => CheckedRole::Assistant,
    };
    CheckedMessage::new(role, text.text.clone())
}
