//! The last listed tools of each server, so that "new" and "no longer available" are correct across restarts.

use std::collections::HashMap;

use switchboard_model::{ServerName, ToolDescriptor};

use crate::row::Row;
use crate::rows::{bind_tool, tool_from_row};
use crate::statement::query;
use crate::{Store, StoreError};

impl Store {
    /// Replaces the remembered tools of a server. An empty list is stored too: a server without tools differs from one
    /// that was never seen.
    pub async fn remember_tools(
        &self,
        server: &ServerName,
        tools: &[ToolDescriptor],
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let mut write = self.write("remember tools").await?;
        query(
            "INSERT INTO remembered_servers (server, seen_at_ms) VALUES ($1, $2)
             ON CONFLICT (server) DO UPDATE SET seen_at_ms = excluded.seen_at_ms",
        )
        .bind(server.as_str())
        .bind(now_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        query("DELETE FROM remembered_tools WHERE server = $1")
            .bind(server.as_str())
            .execute(write.on())
            .await
            .map_err(|error| write.fault(error))?;
        for (position, tool) in (0_i64..).zip(tools) {
            let insert = query(
                "INSERT INTO remembered_tools
                     (server, position, name, title, description, input_schema, output_schema, annotations, extra)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            );
            bind_tool(insert.bind(server.as_str()).bind(position), tool)
                .execute(write.on())
                .await
                .map_err(|error| write.fault(error))?;
        }
        write.commit().await
    }

    /// The tools of all remembered servers, in the order in which they were listed.
    pub async fn remembered_tools(
        &self,
    ) -> Result<HashMap<ServerName, Vec<ToolDescriptor>>, StoreError> {
        // One statement sees one state, also while another process replaces a list.
        let rows: Vec<(String, Option<ToolDescriptor>)> = query(
            "SELECT s.server, t.position, t.name, t.title, t.description, t.input_schema, t.output_schema,
                    t.annotations, t.extra
             FROM remembered_servers s LEFT JOIN remembered_tools t ON t.server = s.server
             ORDER BY s.server, t.position",
        )
        .try_map(|row: Row| {
            let listed: Option<i64> = row.try_get("position")?;
            Ok((row.try_get("server")?, listed.map(|_| tool_from_row(&row)).transpose()?))
        })
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.fault("read the remembered tools", error))?;

        let mut servers: HashMap<ServerName, Vec<ToolDescriptor>> = HashMap::new();
        for (server, tool) in rows {
            servers.entry(ServerName::new(server)).or_default().extend(tool);
        }
        Ok(servers)
    }

    /// Deletes the tools and the era of a server; an unknown server is ignored.
    pub async fn forget_server(&self, server: &ServerName) -> Result<(), StoreError> {
        let mut write = self.write("forget a server").await?;
        // The tools are deleted with their server by a foreign key.
        for delete in [
            "DELETE FROM remembered_servers WHERE server = $1",
            "DELETE FROM era_verdicts WHERE server = $1",
        ] {
            query(delete)
                .bind(server.as_str())
                .execute(write.on())
                .await
                .map_err(|error| write.fault(error))?;
        }
        write.commit().await
    }
}
