//! How the slots of a tool are lent to the boards that share a database.
//!
//! A board runs calls on slots that it was lent, without asking anybody. It asks for more when a call waits, and gives back
//! what nobody needs. [`slot_targets`] says how many slots each board should have; [`lend_slots`] what one board may have
//! now, so that all boards together never hold more than the limit.
//!
//! A board that holds more than its target starts no call until it fits, and then gives the difference back. Three simpler
//! rules keep the limit too, and fail otherwise (the tests show it): to leave a board what is busy there, and to share only
//! what is left, starves others for ever where a board is always busy; to leave one slot for whoever waits longer lets
//! slots lie idle.

use std::cmp::Reverse;

/// What a board says of its slots of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SlotClaim {
    /// The slots that it was lent and has not given back. It starts no call beyond them.
    pub held: u32,
    /// The slots that calls run on.
    pub busy: u32,
    /// The calls that wait for a slot.
    pub waiting: u32,
    /// When the oldest of these began to wait, by the clock of the database.
    pub waiting_since_ms: Option<i64>,
    /// How many free slots it would like to keep, for the next calls.
    pub spare: u32,
}

/// What a board may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SlotLoan {
    /// The slots that count as its own from now on, never fewer than it said that it holds.
    pub held: u32,
    /// How many it should have. With more, it starts nothing until it fits.
    pub target: u32,
}

impl SlotClaim {
    /// How many slots its calls would use.
    pub fn need(&self) -> u32 {
        self.busy.saturating_add(self.waiting)
    }
}

/// How many free slots a board that uses a tool may keep: with all boards, about half of the slots.
pub fn spare_slots(max: u32, boards: u32) -> u32 {
    max.div_ceil(boards.max(1).saturating_mul(2)).max(1)
}

/// How many slots each board should have, in the order of `claims`.
///
/// The slots are handed out one by one: to the board that has the fewest of those whose calls need more, and among these to
/// the one with the call that waits longest. What no call needs is handed out in the same way to those who want spare ones.
pub fn slot_targets(max: u32, claims: &[SlotClaim]) -> Vec<u32> {
    let needs: Vec<u32> = claims.iter().map(SlotClaim::need).collect();
    let mut targets = level(max, &needs, claims);
    let handed_out: u32 = targets.iter().sum();
    let wishes: Vec<u32> = claims.iter().map(|claim| claim.spare).collect();
    let spare = level(max - handed_out, &wishes, claims);
    for (target, spare) in targets.iter_mut().zip(spare) {
        *target += spare;
    }
    targets
}

/// Lends slots to the board at `mine`: up to its target, and no more than the others leave.
pub fn lend_slots(max: u32, claims: &[SlotClaim], mine: usize) -> SlotLoan {
    lend_up_to(max, claims, mine, &slot_targets(max, claims))
}

fn lend_up_to(max: u32, claims: &[SlotClaim], mine: usize, targets: &[u32]) -> SlotLoan {
    let (Some(claim), Some(target)) = (claims.get(mine), targets.get(mine).copied()) else {
        return SlotLoan::default();
    };
    let all = claims.iter().fold(0_u32, |all, claim| all.saturating_add(claim.held));
    let left = max.saturating_sub(all - claim.held);
    SlotLoan { held: claim.held.max(target.min(left)), target }
}

/// Hands out up to `slots` such that nobody has more than it wants, and nobody could get one more without one from a board
/// that has no more than it.
fn level(slots: u32, wants: &[u32], claims: &[SlotClaim]) -> Vec<u32> {
    let mut given = vec![0_u32; wants.len()];
    let mut left = slots;
    // Whole rounds first, so that a limit of millions takes no millions of steps.
    loop {
        let wanting: Vec<usize> = (0..wants.len()).filter(|at| given[*at] < wants[*at]).collect();
        let count = u32::try_from(wanting.len()).unwrap_or(u32::MAX);
        let Some(smallest) = wanting.iter().map(|at| wants[*at] - given[*at]).min() else { break };
        let each = smallest.min(left / count);
        if each == 0 {
            let mut by_age = wanting;
            by_age.sort_by_key(|at| {
                (claims[*at].waiting_since_ms.unwrap_or(i64::MAX), Reverse(claims[*at].held))
            });
            for at in by_age.into_iter().take(left as usize) {
                given[at] += 1;
            }
            break;
        }
        for at in wanting {
            given[at] += each;
        }
        left -= each * count;
    }
    given
}

#[cfg(test)]
#[path = "slot_lending_tests.rs"]
mod tests;
