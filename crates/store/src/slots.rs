//! The slots of tools, lent to the boards of this database: one trade in one transaction, and who holds what.
//!
//! How many slots a board gets is decided by [`lend_slots`], under a lock of the tool's row. What counts as held survives
//! every fault on the safe side:
//! - A board whose row in `replicas` has expired holds nothing, except for `kept` after its lease.
//! - A board counts as holding no more than it was lent, whatever it says. Only after a restart of the database, which may
//!   have lost the newest loans, its word is taken, and nothing is lent for the time of a lease.
//! - A trade that arrives after a later one of its board changes nothing.
//!
//! Loans are written without waiting for the disk.

use std::time::Duration;

use switchboard_model::{SlotClaim, SlotLoan, lend_slots};

use crate::backend::Pool;
use crate::postgres_transaction::WriteKind;
use crate::row::Row;
use crate::statement::{Statement, query};
use crate::store::Write;
use crate::{Store, StoreError};

/// What a board says of its slots of a tool, and what it asks for.
#[derive(Debug, Clone, Copy)]
pub struct SlotTrade<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// The id of the board in [`crate::Replica`].
    pub board: &'a str,
    /// Counts the trades of this board and tool from 1.
    pub turn: i64,
    /// The limit of the tool, as this board has it. With different ones the lowest of those who use the tool holds.
    pub max: u32,
    pub held: u32,
    pub busy: u32,
    pub waiting: u32,
    /// How long the oldest waiting call has waited.
    pub waited: Option<Duration>,
    pub spare: u32,
    /// How long the slots of this board stay its own after its lease, if it falls silent.
    pub kept: Duration,
    /// The time of a lease: how long nothing is lent after a restart of the database.
    pub lease: Duration,
}

/// The answer to a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TradedSlots {
    pub loan: SlotLoan,
    /// Whether the board's lease holds. If not, it was lent nothing, and what it held is given away.
    pub is_live: bool,
    /// Whether calls wait at other boards.
    pub others_wait: bool,
    /// How long nothing is lent, because the database was restarted.
    pub closed_for: Duration,
}

/// What a board holds of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotHolder {
    pub tool: String,
    /// The id of the board.
    pub board: String,
    /// The name of its machine; empty if its row is gone.
    pub name: String,
    pub held: u32,
    pub busy: u32,
    pub waiting: u32,
    /// Whether its lease holds. The slots of one that fell silent come free later.
    pub is_live: bool,
}

/// The clock and the start of the database.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    now_ms: i64,
    /// When the database was started.
    started: i64,
    /// Until when nothing is lent.
    closed_until: i64,
}

/// A row of `slot_loans`.
#[derive(Debug)]
struct LoanRow {
    board: String,
    turn: i64,
    max: u32,
    claim: SlotClaim,
    /// When its board's lease ends; `None` if the board is gone.
    expires_ms: Option<i64>,
    kept_ms: i64,
}

impl Store {
    /// Notes what a board says of a tool, and lends it what it may have. `None` if a later trade of the board came before.
    pub async fn trade_slots(
        &self,
        trade: &SlotTrade<'_>,
    ) -> Result<Option<TradedSlots>, StoreError> {
        loop {
            let mut write = self.write_as(WriteKind::Deferred, "trade slots").await?;
            let traded = traded(&mut write, self.epoch(), trade).await;
            if let Ok(traded) = traded.map_err(|error| write.fault(error))? {
                write.commit().await?;
                return Ok(traded);
            }
            write.roll_back().await?;
            self.note_restart(trade.lease).await?;
        }
    }

    /// Who holds slots, or waits for some, by tools and boards.
    pub async fn slot_holders(&self) -> Result<Vec<SlotHolder>, StoreError> {
        let now_ms = self.database_now_ms().await?;
        let holders = query(
            "SELECT l.tool, l.board, l.held, l.busy, l.waiting, l.kept_ms, r.name, r.expires_at_ms
             FROM slot_loans l LEFT JOIN replicas r ON r.id = l.board
             WHERE l.held > 0 OR l.waiting > 0 ORDER BY l.tool, l.board",
        );
        let rows = holders.fetch_all(&self.pool).await;
        let holders = rows.and_then(|rows| {
            rows.iter().filter_map(|row| holder(row, now_ms).transpose()).collect()
        });
        holders.map_err(|error| self.fault("read who holds slots", error))
    }

    /// Closes lending for the time of a lease, if the database was restarted since the last trade. On the disk, so that
    /// another restart does not lose it.
    async fn note_restart(&self, lease: Duration) -> Result<(), StoreError> {
        let lease_ms = milliseconds(lease);
        let mut write = self.write("note a restart of the database").await?;
        let noted = async {
            let epoch = epoch(&self.epoch().fetch_one(write.on()).await?)?;
            // The first start of all has lost nothing.
            query(
                "UPDATE slot_epoch SET database_started_ms = $1,
                   closed_until_ms = CASE WHEN database_started_ms = 0 THEN 0 ELSE $2 END
                 WHERE database_started_ms <> $1",
            )
            .bind(epoch.started)
            .bind(epoch.now_ms.saturating_add(lease_ms))
            .execute(write.on())
            .await
        };
        noted.await.map_err(|error| write.fault(error))?;
        write.commit().await
    }

    fn epoch<'q>(&self) -> Statement<'q> {
        query(match self.pool {
            Pool::Sqlite(_) => {
                "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now_ms, 0 AS started_ms,
                   database_started_ms, closed_until_ms FROM slot_epoch"
            }
            Pool::Postgres(_) => {
                "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now_ms,
                   CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000 AS BIGINT) AS started_ms,
                   database_started_ms, closed_until_ms FROM slot_epoch"
            }
        })
    }
}

/// The database was restarted since the last trade.
struct Restarted;

type TradeOutcome = Result<Option<TradedSlots>, Restarted>;

async fn traded(
    write: &mut Write,
    read_epoch: Statement<'_>,
    trade: &SlotTrade<'_>,
) -> Result<TradeOutcome, sqlx::Error> {
    // Locks the row, and makes it if need be.
    query(
        "INSERT INTO slot_tools (tool, trades) VALUES ($1, 1)
         ON CONFLICT (tool) DO UPDATE SET trades = slot_tools.trades + 1",
    )
    .bind(trade.tool)
    .execute(write.on())
    .await?;
    let row = read_epoch.fetch_one(write.on()).await?;
    let (noted_ms, epoch) = (row.try_get::<i64>("database_started_ms")?, epoch(&row)?);
    if noted_ms != epoch.started {
        return Ok(Err(Restarted));
    }
    let rows = query(
        "SELECT l.board, l.turn, l.max_instances, l.held, l.busy, l.waiting, l.waiting_since_ms, l.spare, l.kept_ms,
           r.expires_at_ms
         FROM slot_loans l LEFT JOIN replicas r ON r.id = l.board WHERE l.tool = $1 ORDER BY l.board",
    )
    .bind(trade.tool)
    .try_map(|row: Row| loan_row(&row))
    .fetch_all(write.on())
    .await?;
    let mine = rows.iter().find(|row| row.board == trade.board);
    if mine.is_some_and(|mine| mine.turn >= trade.turn) {
        return Ok(Ok(None));
    }
    let is_live = match mine {
        Some(mine) => mine.is_live(epoch.now_ms),
        None => lease_holds(write, trade.board, epoch.now_ms).await?,
    };
    let traded = decide(trade, &rows, epoch, is_live);
    if rows.iter().any(|row| row.is_over(epoch.now_ms)) {
        query(
            "DELETE FROM slot_loans WHERE tool = $1 AND board <> $2 AND NOT EXISTS
               (SELECT 1 FROM replicas r WHERE r.id = slot_loans.board AND r.expires_at_ms + slot_loans.kept_ms > $3)",
        )
        .bind(trade.tool)
        .bind(trade.board)
        .bind(epoch.now_ms)
        .execute(write.on())
        .await?;
    }
    let since_ms = trade.waited.map(|waited| epoch.now_ms - milliseconds(waited));
    query(
        "INSERT INTO slot_loans
           (tool, board, turn, max_instances, held, busy, waiting, waiting_since_ms, spare, kept_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (tool, board) DO UPDATE SET turn = excluded.turn, max_instances = excluded.max_instances,
           held = excluded.held, busy = excluded.busy, waiting = excluded.waiting,
           waiting_since_ms = excluded.waiting_since_ms, spare = excluded.spare, kept_ms = excluded.kept_ms",
    )
    .bind(trade.tool)
    .bind(trade.board)
    .bind(trade.turn)
    .bind(i64::from(trade.max))
    .bind(i64::from(traded.loan.held))
    .bind(i64::from(trade.busy))
    .bind(i64::from(trade.waiting))
    .bind(since_ms)
    .bind(i64::from(trade.spare))
    .bind(milliseconds(trade.kept))
    .execute(write.on())
    .await?;
    Ok(Ok(Some(traded)))
}

/// What the board of a trade may have.
fn decide(trade: &SlotTrade<'_>, rows: &[LoanRow], epoch: Epoch, is_live: bool) -> TradedSlots {
    let now_ms = epoch.now_ms;
    let closed_ms = epoch.closed_until.saturating_sub(now_ms).max(0);
    let is_closed = closed_ms > 0;
    let mine = rows.iter().find(|row| row.board == trade.board);
    let held = match mine {
        _ if is_closed => trade.held,
        Some(mine) if is_live => trade.held.min(mine.claim.held),
        Some(_) | None => 0,
    };
    let others = rows.iter().filter(|row| row.board != trade.board && !row.is_over(now_ms));
    // What a silent board keeps is out of reach, and nobody waits there.
    let (live, silent): (Vec<_>, Vec<_>) = others.partition(|row| is_closed || row.is_live(now_ms));
    let lowest =
        live.iter().filter(|row| row.claim.held > 0 || row.claim.need() > 0).map(|row| row.max);
    let max = lowest.min().unwrap_or(trade.max).min(trade.max);
    let kept = silent.iter().fold(0_u32, |kept, row| kept.saturating_add(row.claim.held));
    let claim = SlotClaim {
        held,
        busy: trade.busy.min(held),
        waiting: trade.waiting,
        waiting_since_ms: trade.waited.map(|waited| now_ms - milliseconds(waited)),
        spare: trade.spare,
    };
    let others_wait = live.iter().any(|row| row.claim.waiting > 0);
    let mut claims = vec![claim];
    claims.extend(live.iter().map(|row| row.claim));
    let mut loan = lend_slots(max.saturating_sub(kept), &claims, 0);
    if is_closed || !is_live {
        loan.held = held;
    }
    let closed_for = Duration::from_millis(closed_ms.unsigned_abs());
    TradedSlots { loan, is_live: is_live || is_closed, others_wait, closed_for }
}

impl LoanRow {
    fn is_live(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires| expires > now_ms)
    }

    /// Whether its board has gone, and what it held is free.
    fn is_over(&self, now_ms: i64) -> bool {
        self.expires_ms.is_none_or(|expires| expires.saturating_add(self.kept_ms) <= now_ms)
    }
}

async fn lease_holds(write: &mut Write, board: &str, now_ms: i64) -> Result<bool, sqlx::Error> {
    let row = query("SELECT expires_at_ms FROM replicas WHERE id = $1").bind(board);
    let row = row.fetch_optional(write.on()).await?;
    let expires: Option<i64> = row.map(|row| row.try_get("expires_at_ms")).transpose()?;
    Ok(expires.is_some_and(|expires| expires > now_ms))
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn count(row: &Row, column: &str) -> Result<u32, sqlx::Error> {
    Ok(u32::try_from(row.try_get::<i64>(column)?).unwrap_or(u32::MAX))
}

fn epoch(row: &Row) -> Result<Epoch, sqlx::Error> {
    Ok(Epoch {
        now_ms: row.try_get("now_ms")?,
        started: row.try_get("started_ms")?,
        closed_until: row.try_get("closed_until_ms")?,
    })
}

fn loan_row(row: &Row) -> Result<LoanRow, sqlx::Error> {
    Ok(LoanRow {
        board: row.try_get("board")?,
        turn: row.try_get("turn")?,
        max: count(row, "max_instances")?,
        claim: SlotClaim {
            held: count(row, "held")?,
            busy: count(row, "busy")?,
            waiting: count(row, "waiting")?,
            waiting_since_ms: row.try_get("waiting_since_ms")?,
            spare: count(row, "spare")?,
        },
        expires_ms: row.try_get("expires_at_ms")?,
        kept_ms: row.try_get("kept_ms")?,
    })
}

fn holder(row: &Row, now_ms: i64) -> Result<Option<SlotHolder>, sqlx::Error> {
    let expires: Option<i64> = row.try_get("expires_at_ms")?;
    let Some(expires) = expires else { return Ok(None) };
    if expires.saturating_add(row.try_get("kept_ms")?) <= now_ms {
        return Ok(None);
    }
    Ok(Some(SlotHolder {
        tool: row.try_get("tool")?,
        board: row.try_get("board")?,
        name: row.try_get("name")?,
        held: count(row, "held")?,
        busy: count(row, "busy")?,
        waiting: count(row, "waiting")?,
        is_live: expires > now_ms,
    }))
}
