//! Properties of targets and loans, and a simulation of boards that trade.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;

fn claim(busy: u32, waiting: u32, waiting_since_ms: Option<i64>) -> SlotClaim {
    SlotClaim { held: busy, busy, waiting, waiting_since_ms, spare: 0 }
}

#[test]
fn slots_go_to_who_has_least_and_then_to_who_waits_longest() {
    #[track_caller]
    fn check(max: u32, claims: &[SlotClaim], expected: &[u32]) {
        assert_eq!(slot_targets(max, claims), expected);
    }
    let greedy = claim(6, 24, Some(1));
    check(6, &[greedy], &[6]);
    check(6, &[greedy, claim(0, 1, Some(9))], &[5, 1]);
    check(6, &[greedy, claim(0, 9, Some(9)), claim(0, 9, Some(8))], &[2, 2, 2]);
    check(7, &[greedy, claim(0, 9, Some(9)), claim(0, 9, Some(0))], &[2, 2, 3]);
    check(1, &[claim(1, 0, None), claim(0, 1, Some(5))], &[0, 1]);
    check(1, &[claim(1, 3, Some(4)), claim(0, 1, Some(5))], &[1, 0]);
    check(2, &[], &[]);
    let idle = SlotClaim { held: 3, spare: 3, ..SlotClaim::default() };
    check(6, &[idle, idle, idle], &[2, 2, 2]);
    check(6, &[idle, claim(2, 4, Some(1))], &[0, 6]);
    check(u32::MAX, &[claim(5, u32::MAX, None), claim(1, 2, None)], &[u32::MAX - 3, 3]);
}

#[test]
fn nobody_is_lent_what_others_still_hold() {
    let greedy = SlotClaim { held: 6, ..claim(6, 24, Some(1)) };
    let late = claim(0, 3, Some(2));
    assert_eq!(lend_slots(6, &[greedy, late], 1), SlotLoan { held: 0, target: 3 });
    assert_eq!(lend_slots(6, &[greedy, late], 0), SlotLoan { held: 6, target: 3 });
    let fitting = SlotClaim { held: 4, busy: 4, ..greedy };
    assert_eq!(lend_slots(6, &[fitting, late], 1), SlotLoan { held: 2, target: 3 });
    assert_eq!(lend_slots(6, &[], 0), SlotLoan::default());
    assert_eq!((spare_slots(6, 3), spare_slots(1, 3), spare_slots(7, 1)), (1, 1, 4));
    assert_eq!((spare_slots(6, 0), spare_slots(u32::MAX, u32::MAX)), (3, 1));
}

fn some_claim() -> impl Strategy<Value = SlotClaim> {
    (0u32..9, 0u32..9, 0u32..9, prop::option::of(0i64..5), 0u32..4).prop_map(
        |(busy, free, waiting, since, spare)| SlotClaim {
            held: busy + free,
            busy,
            waiting,
            waiting_since_ms: since,
            spare,
        },
    )
}

proptest! {
    #[test]
    fn targets_use_all_slots_that_are_needed_and_are_level(
        max in 0u32..20,
        claims in prop::collection::vec(some_claim(), 0..7),
    ) {
        let targets = slot_targets(max, &claims);
        let (sum, needs): (u32, u32) =
            (targets.iter().sum(), claims.iter().map(SlotClaim::need).sum());
        prop_assert!(sum <= max);
        prop_assert!(sum >= max.min(needs), "no slot lies idle while a call waits");
        for (target, claim) in targets.iter().zip(&claims) {
            prop_assert!(*target <= claim.need() + claim.spare);
            if *target < claim.need() {
                let most = targets.iter().max().copied().unwrap_or_default();
                prop_assert!(most <= target + 1, "nobody has two more than who needs more");
            }
        }
    }

    #[test]
    fn a_loan_takes_nothing_away_and_never_breaks_the_limit(
        max in 0u32..20,
        claims in prop::collection::vec(some_claim(), 1..7),
        mine in 0usize..7,
    ) {
        let mine = mine % claims.len();
        let loan = lend_slots(max, &claims, mine);
        let before: u32 = claims.iter().map(|claim| claim.held).sum();
        let after = before - claims[mine].held + loan.held;
        prop_assert!(loan.held >= claims[mine].held);
        prop_assert!(after <= max.max(before));
    }

    #[test]
    fn simulated_boards_keep_the_limit_whatever_is_lost_and_whoever_dies(
        seed in any::<u64>(),
        max in 1u32..9,
        boards in 1usize..5,
        rule in 0usize..4,
    ) {
        // With any targets: that the limit holds does not depend on them.
        let rule = [slot_targets as Rule, keep_busy, share_the_rest, leave_one][rule];
        let load = [1, 10, 1, 10].map(|callers| Load { callers, ticks: 5 });
        let faults = Faults { lost: 200, death: 2 };
        Simulation::new(max, rule, &load[..boards], faults, seed).run(2_000);
    }
}

/// Rule a: a board keeps what is busy, and gives back what is idle.
fn keep_busy(max: u32, claims: &[SlotClaim]) -> Vec<u32> {
    let held: u32 = claims.iter().map(|claim| claim.held).sum();
    let left = max.saturating_sub(held);
    claims.iter().map(|claim| claim.held.min(claim.need()) + left.min(claim.waiting)).collect()
}

/// Rule b: what busy slots leave is shared fairly.
fn share_the_rest(max: u32, claims: &[SlotClaim]) -> Vec<u32> {
    let busy: u32 = claims.iter().map(|claim| claim.busy).sum();
    let waiting: Vec<u32> = claims.iter().map(|claim| claim.waiting).collect();
    let shares = level(max.saturating_sub(busy), &waiting, claims);
    claims.iter().zip(shares).map(|(claim, share)| claim.busy + share).collect()
}

/// Rule c: a board leaves one slot for another whose calls wait longer.
fn leave_one(max: u32, claims: &[SlotClaim]) -> Vec<u32> {
    let targets = slot_targets(max, claims);
    let older = |mine: &SlotClaim| {
        claims.iter().any(|other| {
            other.waiting_since_ms.is_some_and(|at| at < mine.waiting_since_ms.unwrap_or(i64::MAX))
        })
    };
    claims.iter().zip(targets).map(|(claim, to)| to.saturating_sub(older(claim).into())).collect()
}

type Rule = fn(u32, &[SlotClaim]) -> Vec<u32>;

/// Callers at a board, each of which calls again as soon as its call has ended.
#[derive(Debug, Clone, Copy)]
struct Load {
    callers: u32,
    /// How long a call takes.
    ticks: u64,
}

/// In how many of a thousand steps there is a fault.
#[derive(Debug, Clone, Copy)]
struct Faults {
    /// An answer to a trade is lost, after the trade took effect.
    lost: u64,
    death: u64,
}

const NONE: Faults = Faults { lost: 0, death: 0 };
/// How long the slots of a dead board are missing.
const LEASE: u64 = 40;

#[derive(Debug, Default)]
struct SimulatedBoard {
    /// What it may use: it starts no call beyond it.
    allowed: u32,
    /// What it has not given back.
    held: u32,
    /// When each of its calls ends.
    running: Vec<u64>,
    /// Since when each of its calls waits.
    queue: VecDeque<u64>,
    /// An answer that is on its way, and when it arrives.
    answer: Option<(u64, SlotLoan)>,
    completed: u64,
    dead_until: u64,
}

struct Simulation {
    max: u32,
    rule: Rule,
    load: Vec<Load>,
    faults: Faults,
    random: u64,
    now: u64,
    boards: Vec<SimulatedBoard>,
    /// What the database has of each board.
    rows: BTreeMap<usize, SlotClaim>,
    /// Calls that ran, over all steps.
    used: u64,
}

impl Simulation {
    fn new(max: u32, rule: Rule, load: &[Load], faults: Faults, seed: u64) -> Self {
        Self {
            max,
            rule,
            load: load.to_vec(),
            faults,
            random: seed | 1,
            now: 0,
            boards: load.iter().map(|_| SimulatedBoard::default()).collect(),
            rows: BTreeMap::new(),
            used: 0,
        }
    }

    /// Boards come one after the other, in the order of their numbers.
    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.now += 1;
            for at in 0..self.boards.len() {
                if self.now > 20 * at as u64 {
                    self.step(at);
                }
            }
            let in_flight: usize = self.boards.iter().map(|board| board.running.len()).sum();
            assert!(in_flight <= self.max as usize, "{in_flight} of {} run", self.max);
            self.used += in_flight as u64;
        }
    }

    fn chance(&mut self, in_a_thousand: u64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1_000 < in_a_thousand
    }

    fn step(&mut self, at: usize) {
        let (now, load) = (self.now, self.load[at]);
        if self.boards[at].dead_until > now {
            return;
        }
        if self.chance(self.faults.death) {
            // Its calls end with it; what the database has of it is forgotten after its lease.
            self.boards[at] =
                SimulatedBoard { dead_until: now + LEASE, ..SimulatedBoard::default() };
            return;
        }
        if self.boards[at].dead_until != 0 {
            self.boards[at].dead_until = 0;
            self.rows.remove(&at);
        }
        let board = &mut self.boards[at];
        if let Some((_, loan)) = board.answer.take_if(|(when, _)| *when <= now) {
            board.held = loan.held;
            board.allowed = loan.held.min(loan.target);
        }
        let before = board.running.len();
        board.running.retain(|end| *end > now);
        board.completed += (before - board.running.len()) as u64;
        while board.queue.len() + board.running.len() < load.callers as usize {
            board.queue.push_back(now);
        }
        while board.running.len() < board.allowed as usize && board.queue.pop_front().is_some() {
            board.running.push(now + load.ticks);
        }
        if board.answer.is_none() {
            self.trade(at);
        }
    }

    fn trade(&mut self, at: usize) {
        let (now, is_lost, takes) = (self.now, self.chance(self.faults.lost), 1 + self.random % 3);
        let board = &mut self.boards[at];
        let busy = count(board.running.len());
        // What is neither allowed nor busy goes back.
        board.held = board.allowed.max(busy);
        let claim = SlotClaim {
            held: board.held,
            busy,
            waiting: count(board.queue.len()),
            waiting_since_ms: board.queue.front().map(|since| since.cast_signed()),
            spare: 1,
        };
        self.rows.insert(at, claim);
        let claims: Vec<SlotClaim> = self.rows.values().copied().collect();
        let mine = self.rows.keys().position(|key| *key == at).unwrap_or_default();
        let loan = lend_up_to(self.max, &claims, mine, &(self.rule)(self.max, &claims));
        self.rows.insert(at, SlotClaim { held: loan.held, ..claim });
        if !is_lost {
            self.boards[at].answer = Some((now + takes, loan));
        }
    }

    /// How many of a hundred slots were used, and the calls of each board that ended.
    fn result(&self) -> (u64, Vec<u64>) {
        let used = self.used * 100 / (u64::from(self.max) * self.now);
        (used, self.boards.iter().map(|board| board.completed).collect())
    }
}

fn count(calls: usize) -> u32 {
    u32::try_from(calls).unwrap()
}

/// What is wrong with a rule over a long time of even demand that exceeds the slots.
fn unfairness(rule: Rule) -> Vec<&'static str> {
    let load = [Load { callers: 30, ticks: 5 }; 3];
    let mut simulation = Simulation::new(6, rule, &load, NONE, 7);
    simulation.run(5_000);
    let (used, completed) = simulation.result();
    let share = completed.iter().sum::<u64>() / 3;
    let mut wrong = Vec::new();
    if used < 80 {
        wrong.push("slots lie idle");
    }
    if completed.iter().any(|calls| *calls * 10 < share * 7) {
        wrong.push("a board is starved");
    }
    wrong
}

#[test]
fn even_demand_is_served_evenly_and_uses_the_slots() {
    assert_eq!(unfairness(slot_targets), [""; 0]);
}

#[test]
fn the_check_of_fairness_finds_each_rule_that_starves_others_or_wastes_slots() {
    assert_eq!(unfairness(keep_busy), ["a board is starved"]);
    assert_eq!(unfairness(share_the_rest), ["a board is starved"]);
    assert_eq!(unfairness(leave_one), ["slots lie idle"]);
}

#[test]
fn modest_boards_are_served_beside_a_greedy_one() {
    let load = |callers| Load { callers, ticks: 5 };
    let mut simulation = Simulation::new(6, slot_targets, &[load(30), load(1), load(1)], NONE, 3);
    simulation.run(5_000);
    let (used, completed) = simulation.result();
    assert!(used > 80, "{used}");
    // Alone, a caller would make a call each 6 steps.
    assert!(completed[1] > 600 && completed[2] > 600, "{completed:?}");
}

#[test]
fn one_slot_travels_between_boards() {
    let load = [Load { callers: 4, ticks: 5 }; 3];
    let mut simulation = Simulation::new(1, slot_targets, &load, NONE, 5);
    simulation.run(5_000);
    let (_, completed) = simulation.result();
    let (least, most) = (completed.iter().min(), completed.iter().max());
    assert!(least.unwrap() * 10 >= most.unwrap() * 7, "{completed:?}");
}

#[test]
fn the_slots_of_a_dead_board_are_used_by_the_others() {
    let load = [Load { callers: 30, ticks: 5 }; 2];
    let mut simulation = Simulation::new(6, slot_targets, &load, NONE, 5);
    simulation.run(1_000);
    simulation.boards[0] = SimulatedBoard { dead_until: u64::MAX, ..SimulatedBoard::default() };
    simulation.run(LEASE);
    simulation.rows.remove(&0);
    let before = simulation.boards[1].completed;
    simulation.run(1_000);
    assert!(simulation.boards[1].completed - before > 900, "six slots of 5 steps, 1,000 steps");
}
