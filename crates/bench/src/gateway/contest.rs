//! Runs the contestants alternately in short rounds and takes the median of each, so that other load on the machine
//! affects all of them alike, or only rounds that do not count.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::process::Process;
use super::wire::Client;

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(1);

/// The clients of one process.
pub(crate) struct Contestant<'a> {
    pub(crate) name: String,
    pub(crate) process: &'a Process,
    pub(crate) clients: Vec<Client>,
}

/// The measured values of one contestant; times are in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) per_second: f64,
    pub(crate) cpu: f64,
    /// CPU time spent in the kernel.
    pub(crate) system: f64,
    /// Voluntary context switches of the process per call.
    pub(crate) sleeps: f64,
}

/// Runs all contestants alternately.
pub(crate) async fn run(mut contestants: Vec<Contestant<'_>>) -> anyhow::Result<Vec<Measured>> {
    let mut rounds: Vec<Vec<Measured>> = vec![Vec::new(); contestants.len()];
    for _ in 0..ROUNDS {
        for (contestant, rounds) in contestants.iter_mut().zip(&mut rounds) {
            rounds.push(contestant.round().await?);
        }
    }
    Ok(rounds.iter().map(|rounds| Measured::median(rounds)).collect())
}

impl Contestant<'_> {
    async fn round(&mut self) -> anyhow::Result<Measured> {
        let (cpu, sleeps) = (self.process.cpu_time()?, self.process.sleeps()?);
        let start = Instant::now();
        let mut working = JoinSet::new();
        for client in self.clients.drain(..) {
            working.spawn(work(client, start + ROUND));
        }
        let mut times = Vec::new();
        while let Some(worked) = working.join_next().await {
            let (client, its_times) = worked??;
            self.clients.push(client);
            times.extend(its_times);
        }
        let (cpu, wall) = (self.process.cpu_time()?.since(cpu), start.elapsed());
        let sleeps = self.process.sleeps()?.saturating_sub(sleeps);
        times.sort_unstable();
        #[expect(clippy::cast_precision_loss, reason = "no round has that many calls")]
        let (calls, sleeps) = (times.len() as f64, sleeps as f64);
        let at = |part: usize| {
            let index = times.len() * part / 100;
            times.get(index).or(times.last()).copied().map_or(0.0, micros)
        };
        Ok(Measured {
            name: self.name.clone(),
            p50: at(50),
            p99: at(99),
            per_second: calls / wall.as_secs_f64(),
            cpu: micros(cpu.total()) / calls,
            system: micros(cpu.system) / calls,
            sleeps: sleeps / calls,
        })
    }
}

async fn work(mut client: Client, end: Instant) -> anyhow::Result<(Client, Vec<Duration>)> {
    let mut times = Vec::new();
    let mut start = Instant::now();
    while start < end {
        client.ask().await?;
        let now = Instant::now();
        times.push(now - start);
        start = now;
    }
    Ok((client, times))
}

impl Measured {
    fn median(rounds: &[Self]) -> Self {
        let of = |value: fn(&Self) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        Self {
            name: rounds.first().map(|round| round.name.clone()).unwrap_or_default(),
            p50: of(|round| round.p50),
            p99: of(|round| round.p99),
            per_second: of(|round| round.per_second),
            cpu: of(|round| round.cpu),
            system: of(|round| round.system),
            sleeps: of(|round| round.sleeps),
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
