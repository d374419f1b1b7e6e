//! Restores the argument names of tools in a reply.

use switchboard_chat::{Block, Reply};
use switchboard_render::Rendering;

/// Restores the tools' own argument names in a reply's calls, where the model was shown other ones.
pub fn restore_arguments(reply: &mut Reply, shown: &Rendering) {
    for block in &mut reply.content {
        let Block::ToolCall(call) = block else { continue };
        let tool = shown.tool(&call.name);
        let Some(map) = tool.and_then(|tool| tool.arguments.as_ref()) else { continue };
        let restored = map.restore(call.arguments.clone());
        if restored != call.arguments {
            let written = std::mem::replace(&mut call.arguments, restored);
            call.origin.get_or_insert_default().arguments = Some(written);
        }
    }
}
