//! `tools/call`: waiting, progress, cancellation, and the scripted reply.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use futures::{FutureExt, future};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::frame::{Frame, Frames, QUEUE, received};
use crate::listing::{rpc_error, server_info};
use crate::state::{CallKey, Shared, Wire};
use crate::stats::Recorder;
use crate::tool::{Asks, Flood, Reply, Tool};

/// A call before it starts.
#[derive(Debug)]
pub(crate) struct Call {
    shared: Arc<Shared>,
    tool: Tool,
    id: Value,
    params: Value,
    wire: Wire,
}

impl Call {
    /// `None` when there is no such tool.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        wire: Wire,
        id: &Value,
        params: &Value,
    ) -> Option<Self> {
        let name = params["name"].as_str()?;
        let tool = shared.tools().into_iter().find(|tool| tool.name == name)?;
        let shared = Arc::clone(shared);
        Some(Self { shared, tool, id: id.clone(), params: params.clone(), wire })
    }

    /// Whether the response has more than one message and needs an event stream.
    pub(crate) fn needs_events(&self) -> bool {
        let progress = self.tool.progress_every.is_some() && !self.progress_token().is_null();
        let says_more = self.tool.asks.is_some() || self.tool.floods.is_some();
        progress || says_more || matches!(self.tool.reply, Reply::Twice)
    }

    /// Runs the call while the frames are read; dropping them ends it.
    pub(crate) fn bound_to_its_reader(self) -> Frames {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let work = self.perform(queue, CancellationToken::new()).into_stream().map(|()| None);
        stream::select(received(receiver).map(Some), work).filter_map(future::ready).boxed()
    }

    /// Runs the call to its end or its cancellation, independently of the reader.
    pub(crate) fn detached(self, session: &str) -> Frames {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let reader =
            Reader { recorder: self.shared.recorder.clone(), id: self.id.clone(), answered: false };
        let key: CallKey = (session.to_owned(), self.id.to_string());
        let token = self.shared.call_token(key.clone());
        let shared = Arc::clone(&self.shared);
        let tracker = shared.tracker.clone();
        tracker.spawn(async move {
            self.perform(queue, token).await;
            shared.forget_call(&key);
        });
        stream::unfold((receiver, reader), |(mut receiver, mut reader)| async move {
            let frame = receiver.recv().await;
            reader.answered |= frame.as_ref().is_none_or(is_answer);
            Some((frame?, (receiver, reader)))
        })
        .boxed()
    }

    async fn perform(self, queue: mpsc::Sender<Frame>, cancelled: CancellationToken) {
        let running = self.shared.recorder.call_started(&self.tool.name, &self.id, &self.params);
        tokio::select! {
            () = cancelled.cancelled(), if !self.tool.ignores_cancel => {
                running.cancel();
                return;
            }
            () = self.wait(&queue) => running.finish(),
        }
        for frame in self.answer() {
            queue.send(frame).await.ok();
        }
    }

    async fn wait(&self, queue: &mpsc::Sender<Frame>) {
        if matches!(self.tool.reply, Reply::Hang) {
            future::pending::<()>().await;
        }
        let asked = self.params["arguments"]["sleep_ms"].as_u64();
        let end = Instant::now() + asked.map_or(self.tool.delay, Duration::from_millis);
        let token = self.progress_token();
        if let Some(flood) = self.tool.floods {
            self.flood(flood, end, queue).await;
        }
        if let Some(interval) = self.tool.progress_every.filter(|_| !token.is_null()) {
            let mut step = 0_u32;
            while Instant::now() + interval < end {
                tokio::time::sleep(interval).await;
                step += 1;
                let params =
                    json!({"progressToken": token, "progress": step, "message": "under way"});
                let progress =
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                queue.send(progress.into()).await.ok();
            }
        }
        if let Some(asks) = &self.tool.asks {
            self.ask(asks, end, queue).await;
        }
        tokio::time::sleep_until(end).await;
        while self.shared.recorder.peak_of(&self.tool.name) < self.tool.waits_for_calls {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn flood(&self, flood: Flood, end: Instant, queue: &mpsc::Sender<Frame>) {
        let comments = Bytes::from(": nothing to see here\n\n".repeat(1000));
        let mut step = 0_u64;
        while Instant::now() < end && !queue.is_closed() {
            step += 1;
            let notification = |method: &str, params: Value| {
                json!({"jsonrpc": "2.0", "method": method, "params": params}).into()
            };
            let progress =
                |step: u64| json!({"progressToken": self.progress_token(), "progress": step});
            let frame = match flood {
                Flood::Comments => Frame::Comments(comments.clone()),
                Flood::Logs => {
                    notification("notifications/message", json!({"level": "info", "data": step}))
                }
                Flood::StuckProgress => notification("notifications/progress", progress(1)),
                Flood::Progress => notification("notifications/progress", progress(step)),
            };
            queue.send(frame).await.ok();
        }
    }

    async fn ask(&self, asks: &Asks, end: Instant, queue: &mpsc::Sender<Frame>) {
        let (every, bytes) = match asks {
            Asks::Once => return self.put_question(1, form(1), queue).await,
            Asks::Page { url, message } => {
                let page = json!({
                    "mode": "url", "url": url, "message": message, "elicitationId": question_id(1),
                });
                return self.put_question(1, page, queue).await;
            }
            Asks::Withdrawn { every, bytes } => (*every, *bytes),
        };
        let mut number = 0;
        while Instant::now() + every < end {
            number += 1;
            self.put_question(number, form(bytes), queue).await;
            let withdrawn = json!({"requestId": question_id(number)});
            let withdrawal =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": withdrawn});
            queue.send(withdrawal.into()).await.ok();
            tokio::time::sleep(every).await;
        }
    }

    async fn put_question(&self, number: u32, params: Value, queue: &mpsc::Sender<Frame>) {
        let (id, method) = (question_id(number), "elicitation/create");
        let question = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        queue.send(question.into()).await.ok();
        self.shared.recorder.count(|stats| stats.questions += 1);
    }

    fn progress_token(&self) -> &Value {
        &self.params["_meta"]["progressToken"]
    }

    fn answer(&self) -> Vec<Frame> {
        match &self.tool.reply {
            Reply::Echo => vec![self.completed(self.echo()).into()],
            Reply::Text(text) => vec![self.completed(text_result(text)).into()],
            Reply::Result(result) => vec![self.completed(result.clone()).into()],
            Reply::ToolError(text) => {
                let mut result = text_result(text);
                result["isError"] = json!(true);
                vec![self.completed(result).into()]
            }
            Reply::RpcError { code, message } => vec![rpc_error(&self.id, *code, message).into()],
            Reply::SessionEraError { code, message } => match self.wire {
                Wire::Legacy => vec![rpc_error(&self.id, *code, message).into()],
                Wire::Modern => vec![self.completed(self.echo()).into()],
            },
            Reply::Error(error) => {
                vec![json!({"jsonrpc": "2.0", "id": self.id, "error": error}).into()]
            }
            Reply::Huge(bytes) => vec![self.huge(*bytes)],
            Reply::Hang => Vec::new(),
            Reply::CloseMidBody => vec![Frame::Break],
            Reply::WrongId => {
                let mut message = self.completed(self.echo());
                message["id"] = json!("nobody-asked-for-this");
                vec![message.into()]
            }
            Reply::Twice => {
                let message = self.completed(self.echo());
                vec![message.clone().into(), message.into()]
            }
            Reply::UnknownContent => {
                let block = json!({"type": "hologram", "beams": 3});
                vec![self.completed(json!({"content": [block]})).into()]
            }
        }
    }

    fn echo(&self) -> Value {
        let arguments = &self.params["arguments"];
        let mut result = text_result(&arguments.to_string());
        if arguments.is_object() {
            result["structuredContent"] = arguments.clone();
        }
        result
    }

    fn completed(&self, mut result: Value) -> Value {
        if self.wire == Wire::Modern && result["resultType"].is_null() {
            result["resultType"] = json!("complete");
            result["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info(&self.shared);
        }
        json!({"jsonrpc": "2.0", "id": self.id, "result": result})
    }

    fn huge(&self, bytes: usize) -> Frame {
        let modern = if self.wire == Wire::Modern { r#","resultType":"complete""# } else { "" };
        Frame::Padded {
            head: format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":""#,
                self.id
            ),
            filler: bytes,
            tail: format!(r#""}}]{modern}}}}}"#),
        }
    }
}

/// Detects that a response is closed before the reply was sent.
#[derive(Debug)]
struct Reader {
    recorder: Recorder,
    id: Value,
    answered: bool,
}

impl Drop for Reader {
    fn drop(&mut self) {
        if !self.answered {
            self.recorder.count(|stats| stats.closed_responses.push(self.id.clone()));
        }
    }
}

fn is_answer(frame: &Frame) -> bool {
    match frame {
        Frame::Message(text) => {
            let is_said = |method: &str| text.contains(&format!(r#""method":"{method}"#));
            !is_said("notifications/") && !is_said("elicitation/create")
        }
        Frame::Comments(_) => false,
        Frame::Padded { .. } | Frame::Break => true,
    }
}

/// The parameters of a form with a message of that many bytes.
fn form(bytes: usize) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    json!({"message": "?".repeat(bytes), "requestedSchema": schema})
}

fn question_id(number: u32) -> String {
    format!("question-{number}")
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}
