//! A conversation with an agent in which the test is the model.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_test_support::model_backends::{DrivenModel, ModelTurn, Step, ToolOutcome};
use tokio::time::Instant;

use super::program::{Agent, Link, Running};
use super::{Home, Serve, Transport};

/// An agent starts within seconds; on a busy machine, and with a board that starts, it takes longer.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two calls that wait for a change.
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Conversation {
    agent: Agent,
    model: DrivenModel,
    running: Running,
    /// The board that the agent talks to, where it does not start its own; it lives as long as the conversation.
    _serve: Option<Serve>,
}

impl Conversation {
    /// With a board that is ready, or with one that the agent starts.
    pub(crate) async fn start(agent: Agent, transport: Transport, home: &Home) -> Self {
        match transport {
            Transport::Http => {
                let serve = home.serve().await;
                let link = Link::Http(serve.at("/mcp"));
                Self::linked(agent, home, &link).await.beside(serve)
            }
            Transport::Stdio => Self::linked(agent, home, &Link::OwnBoard).await,
        }
    }

    pub(crate) async fn linked(agent: Agent, home: &Home, link: &Link) -> Self {
        let model = DrivenModel::start().await;
        let address = model.root_url();
        Self::with_model(agent, home, link, model, &address)
    }

    /// With a model that the agent reaches at this address.
    pub(crate) fn with_model(
        agent: Agent,
        home: &Home,
        link: &Link,
        model: DrivenModel,
        address: &str,
    ) -> Self {
        let running = Running::start(agent, home, link, address);
        Self { agent, model, running, _serve: None }
    }

    /// With a board that lives as long as the conversation.
    pub(crate) fn beside(self, serve: Serve) -> Self {
        Self { _serve: Some(serve), ..self }
    }

    /// The next request of the agent.
    pub(crate) async fn turn(&mut self) -> ModelTurn {
        let turn = self.model.next_turn(PATIENCE).await;
        turn.unwrap_or_else(|| panic!("{:?} asks nothing: {}", self.agent, self.running.said()))
    }

    /// Calls a tool of the board and gives the request that brings its result.
    pub(crate) async fn call(
        &mut self,
        turn: ModelTurn,
        tool: &str,
        arguments: Value,
    ) -> ModelTurn {
        turn.answer(Step::new().call(self.agent.tool(tool), arguments));
        self.turn().await
    }

    /// Whether the board's tool of this name is offered to the model.
    pub(crate) fn offers(&self, turn: &ModelTurn, tool: &str) -> bool {
        turn.tools.contains(&self.agent.tool(tool))
    }

    /// How many of the board's tools are offered.
    pub(crate) fn offered(&self, turn: &ModelTurn) -> usize {
        let prefix = self.agent.tool("");
        turn.tools.iter().filter(|tool| tool.starts_with(&prefix)).count()
    }

    /// Calls `demo__echo` until the tool is offered, or is no longer.
    pub(crate) async fn until_offered(
        &mut self,
        mut turn: ModelTurn,
        tool: &str,
        offered: bool,
    ) -> ModelTurn {
        let end = Instant::now() + PATIENCE;
        while self.offers(&turn, tool) != offered {
            assert!(Instant::now() < end, "{tool} in {:?}", turn.tools);
            tokio::time::sleep(POLL).await;
            turn = self.call(turn, "demo__echo", json!({"text": "again"})).await;
        }
        turn
    }

    /// Calls a tool until its answer is as expected.
    pub(crate) async fn until_answered(
        &mut self,
        turn: ModelTurn,
        tool: &str,
        arguments: &Value,
        is_expected: impl Fn(&ToolOutcome) -> bool,
    ) -> ModelTurn {
        let end = Instant::now() + PATIENCE;
        let mut turn = self.call(turn, tool, arguments.clone()).await;
        while !is_expected(turn.result()) {
            assert!(Instant::now() < end, "{tool} answers: {:?}", turn.results);
            tokio::time::sleep(POLL).await;
            turn = self.call(turn, tool, arguments.clone()).await;
        }
        turn
    }

    /// Ends the conversation; the agent and what it started end, too.
    pub(crate) async fn finish(self, turn: ModelTurn) {
        turn.answer(Step::text("all done"));
        let printed = self.running.ended().await;
        assert!(printed.contains("all done"), "{printed}");
    }
}
