//! Trades slots with the other boards of a shared database.
//!
//! A call takes a slot that this board was lent, and asks nobody. While a call waits, or slots were lent, one task for each
//! tool trades: it says what the board holds, and is told what it may have ([`switchboard_model::lend_slots`]). The board
//! grows only by an answer, and shrinks before it says so, so that a lost answer loses slots and never doubles them.
//!
//! When the lease of the board ends, what it was lent is void ([`SlotLender::fence`]). An answer to a trade that was sent
//! before counts for nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_model::{AfterLoss, CanonicalName, OnStoreLoss, SlotPlan, spare_slots};
use switchboard_store::{
    ChangeHint, HintNotice, HintTopic, SlotTrade, Store, StoreError, TradedSlots,
};
use switchboard_telemetry::{board_lease, boards_seen, slots_traded};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::board_lease::LEASE;
use crate::lent_slots::{LentSlots, SlotLending};
use crate::max_instances::{ConcurrencyLimits, ConcurrencyTable};
use crate::running_calls::RunningCalls;

/// How often a board trades for a tool in use, to tell its numbers and to hear those of others.
const SYNC_EVERY: Duration = Duration::from_millis(500);
/// How long slots that no call uses stay.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// How soon a board whose calls wait asks again; each time twice as long, up to [`SLOWEST_POLL`].
const FIRST_POLL: Duration = Duration::from_millis(20);
const SLOWEST_POLL: Duration = Duration::from_millis(160);
/// How long a trade may take. Its outcome counts for nothing afterwards.
const TRADE_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a running call was cancelled.
const FENCED: &str = "the call was cancelled because this board could not reach its database for too long: another board \
                      may use its slot now";

/// Lends slots to this board.
#[derive(Debug)]
pub(crate) struct SlotLender {
    store: Store,
    /// The id of this board in the database.
    board: String,
    lending: SlotLending,
    slots: Arc<ConcurrencyTable>,
    running: RunningCalls,
    plan: SlotPlan,
    /// How many boards there are, as of the last renewal.
    boards: AtomicU32,
    /// Counts the trades of this board.
    turns: AtomicI64,
    /// Counts how often all loans became void. Slots that are lent are resized under its lock.
    voided: Mutex<u64>,
    /// Asks for a renewal of the lease at once.
    pub(crate) renew_now: Notify,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Where the slots of a board come from and go to.
pub(crate) struct SlotParts {
    pub(crate) store: Store,
    pub(crate) board: String,
    pub(crate) lending: SlotLending,
    pub(crate) slots: Arc<ConcurrencyTable>,
    pub(crate) running: RunningCalls,
    pub(crate) plan: SlotPlan,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl SlotLender {
    pub(crate) fn new(parts: SlotParts) -> Arc<Self> {
        let SlotParts { store, board, lending, slots, running, plan, tasks, stop } = parts;
        Arc::new(Self {
            store,
            board,
            lending,
            slots,
            running,
            plan,
            boards: AtomicU32::new(1),
            turns: AtomicI64::new(0),
            voided: Mutex::new(0),
            renew_now: Notify::new(),
            tasks,
            stop,
        })
    }

    pub(crate) fn board(&self) -> &str {
        &self.board
    }

    pub(crate) fn on_store_loss(&self) -> OnStoreLoss {
        self.plan.on_store_loss
    }

    /// How many boards there are.
    pub(crate) fn boards(&self) -> u32 {
        self.boards.load(Ordering::Relaxed)
    }

    pub(crate) fn set_boards(&self, boards: usize) {
        let boards = u32::try_from(boards).unwrap_or(u32::MAX).max(1);
        boards_seen(boards);
        self.boards.store(boards, Ordering::Relaxed);
    }

    /// Starts a task for each tool whose slots are asked for.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut hints = self.store.hints().subscribe();
        let mut hears = true;
        loop {
            tokio::select! {
                tools = self.lending.demand.next() => {
                    for tool in tools {
                        self.start(&tool);
                    }
                }
                notice = hints.recv(), if hears => match notice {
                    Ok(HintNotice::Hint(ChangeHint { topic: HintTopic::Slots, key, .. })) => {
                        self.look_again(Some(&key));
                    }
                    Ok(HintNotice::Hint(_)) => {}
                    Ok(HintNotice::PollAll) | Err(RecvError::Lagged(_)) => self.look_again(None),
                    Err(RecvError::Closed) => hears = false,
                },
            }
        }
    }

    fn start(self: &Arc<Self>, tool: &CanonicalName) {
        let Some(slots) = self.slots.present(tool) else { return };
        let (lender, stop, tool) = (self.clone(), self.stop.clone(), tool.clone());
        self.tasks.spawn(stop.run_until_cancelled_owned(async move {
            if let Some(lent) = slots.lent_side() {
                Trader { lender: &lender, tool: tool.to_string(), slots: &slots, lent }.run().await;
            }
        }));
    }

    /// Trades again for the tools that this board uses.
    pub(crate) fn look_again(&self, tool: Option<&str>) {
        for slots in self.slots.of_tools() {
            if let Some(lent) = slots.lent_side()
                && tool.is_none_or(|tool| lent.is_of(tool))
                && (slots.existing() > 0 || lent.waiting().0 > 0)
            {
                lent.ask();
            }
        }
    }

    /// The lease is over: nothing that was lent counts any more. Running calls end, unless the board goes on with a share.
    pub(crate) fn fence(&self) {
        let shares = self.plan.on_store_loss == OnStoreLoss::Share;
        // Before the calls are looked at: one that begins now sees that it may not.
        self.lending.lease.lose(shares);
        board_lease(false);
        let boards = self.boards.load(Ordering::Relaxed);
        let mut voided = self.voided.lock();
        *voided += 1;
        for slots in self.slots.of_tools() {
            if let Some(lent) = slots.lent_side() {
                slots.resize(if shares { lent.terms().max / boards } else { 0 });
            }
        }
        drop(voided);
        let cancelled = if shares { 0 } else { self.running.cut(FENCED) };
        tracing::error!(
            cancelled,
            on_store_loss = self.plan.on_store_loss.as_str(),
            "the database could not be reached for too long: other boards may use the slots of this board now"
        );
    }

    /// The lease is held again after it was not: what the board took on its own ends.
    pub(crate) fn regained(&self) {
        let mut voided = self.voided.lock();
        *voided += 1;
        for slots in self.slots.of_tools() {
            if slots.lent_side().is_some() {
                slots.resize(0);
            }
        }
        drop(voided);
        self.look_again(None);
    }

    /// Tells other boards to look at a tool.
    fn tell(&self, tool: &str) {
        self.store.hints().publish(ChangeHint {
            topic: HintTopic::Slots,
            key: tool.to_owned(),
            version: 0,
        });
    }

    fn kept(&self, lent: &LentSlots) -> Duration {
        let terms = lent.terms();
        match self.plan.after_loss {
            Some(AfterLoss::Timeout) => terms.timeout,
            None if terms.max == 1 => terms.timeout,
            Some(AfterLoss::Lease) | None => Duration::ZERO,
        }
    }
}

/// Trades for one tool, as long as the board uses it.
struct Trader<'a> {
    lender: &'a SlotLender,
    tool: String,
    slots: &'a ConcurrencyLimits,
    lent: &'a LentSlots,
}

impl Trader<'_> {
    async fn run(self) {
        let (mut poll, mut told) = (FIRST_POLL, 0);
        let (mut uses, mut used_at) = (self.lent.uses(), Instant::now());
        loop {
            self.lent.lease().held().await;
            let (busy, now_uses) = (self.slots.busy(), self.lent.uses());
            if busy > 0 || now_uses != uses || self.lent.waiting().0 > 0 {
                (uses, used_at) = (now_uses, Instant::now());
            }
            let is_idle = used_at.elapsed() >= IDLE_AFTER;
            let before = self.slots.existing();
            let traded = match self.trade(busy, is_idle).await {
                Ok(Some(traded)) => traded,
                Ok(None) => continue,
                Err(error) => {
                    tracing::debug!(
                        tool = self.tool,
                        error = error.in_full(),
                        "slots were not traded"
                    );
                    self.pause(SYNC_EVERY).await;
                    continue;
                }
            };
            let (loan, waiting) = (traded.loan, self.lent.waiting().0);
            let existing = self.slots.existing();
            if loan.held < before && traded.others_wait {
                self.lender.tell(&self.tool);
            }
            if existing == 0 && loan.held == 0 && waiting == 0 {
                if self.lent.end_trade() {
                    return;
                }
                continue;
            }
            // What just came free here goes back at once.
            if existing < loan.held {
                continue;
            }
            // Others that have too much learn it soon. Once for each target: they cannot do more.
            if loan.target > loan.held && loan.target != told {
                told = loan.target;
                self.lender.tell(&self.tool);
            }
            let has_grown = existing > before;
            poll = if has_grown { FIRST_POLL } else { (poll * 2).min(SLOWEST_POLL) };
            let pause = if waiting > 0 {
                poll
            } else {
                told = 0;
                SYNC_EVERY
            };
            self.pause(pause).await;
        }
    }

    async fn pause(&self, pause: Duration) {
        let _changed = timeout(pause, self.lent.changed()).await;
    }

    /// One trade. `None` if it came to nothing and another should follow.
    async fn trade(&self, busy: u32, is_idle: bool) -> Result<Option<TradedSlots>, StoreError> {
        let lender = self.lender;
        let peak = self.lent.take_peak(busy);
        let max = self.lent.terms().max;
        let voided = {
            let voided = lender.voided.lock();
            if is_idle {
                self.slots.resize(0);
            }
            *voided
        };
        let (waiting, waited) = self.lent.waiting();
        let spare = spare_slots(max, lender.boards.load(Ordering::Relaxed));
        let trade = SlotTrade {
            tool: &self.tool,
            board: &lender.board,
            turn: lender.turns.fetch_add(1, Ordering::Relaxed) + 1,
            max,
            held: self.slots.existing(),
            busy,
            waiting,
            waited,
            spare: if is_idle { 0 } else { spare.max(peak.saturating_sub(busy)) },
            kept: lender.kept(self.lent),
            lease: LEASE,
        };
        let Ok(traded) = timeout(TRADE_TIMEOUT, lender.store.trade_slots(&trade)).await else {
            slots_traded("timeout");
            self.pause(SYNC_EVERY).await;
            return Ok(None);
        };
        let Some(traded) = traded? else { return Ok(None) };
        if !self.apply(voided, traded) {
            return Ok(None);
        }
        Ok(Some(traded))
    }

    /// Takes what was lent. Returns whether the answer still counts.
    fn apply(&self, voided: u64, traded: TradedSlots) -> bool {
        let now = self.lender.voided.lock();
        if *now != voided {
            return false;
        }
        if !traded.is_live {
            // The database counts this board as gone, though its lease holds here: the clock of the database has jumped,
            // or its row was deleted.
            drop(now);
            self.lender.fence();
            self.lender.renew_now.notify_one();
            return false;
        }
        self.slots.resize(traded.loan.held.min(traded.loan.target));
        self.lent.set_others_wait(traded.others_wait);
        slots_traded("ok");
        self.lent.report(self.slots.existing());
        drop(now);
        true
    }
}
