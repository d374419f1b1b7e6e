//! Databases of a temporary `PostgreSQL` cluster, which all tests of a user share and which ends by itself.
//!
//! The cluster is started by `e2e/postgres-cluster`. Where `PostgreSQL` is missing, tests fail and say how to get it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A new database, which is deleted with this value.
#[derive(Debug)]
pub struct PostgresDatabase {
    cluster: PathBuf,
    name: String,
    url: String,
}

impl PostgresDatabase {
    /// Makes a database; starts the shared cluster if it does not run.
    pub fn new() -> Self {
        Self::in_cluster(shared_cluster())
    }

    fn in_cluster(cluster: PathBuf) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // A process of an earlier run may have had this id, and left its database.
        psql(&cluster, "postgres", &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        psql(&cluster, "postgres", &format!("CREATE DATABASE {name}"));
        let url = format!("postgres://postgres@localhost/{name}?host={}", cluster.display());
        Self { cluster, name, url }
    }

    /// The address of the database, by the socket of its cluster.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory of the socket.
    pub fn socket_directory(&self) -> &Path {
        &self.cluster
    }

    /// Runs a statement, and returns what it answers: a line for each row, columns with `|` between them.
    pub fn execute(&self, sql: &str) -> String {
        psql(&self.cluster, &self.name, sql)
    }

    /// Runs a statement in the database of the cluster that always exists.
    pub fn execute_outside(&self, sql: &str) -> String {
        psql(&self.cluster, "postgres", sql)
    }
}

impl Default for PostgresDatabase {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // The cluster of a test may have ended before its databases.
        let _dropped = client(&self.cluster, "postgres", &drop).output();
    }
}

/// A cluster of one test, which may stop, kill and start it.
#[derive(Debug)]
pub struct PostgresCluster {
    directory: tempfile::TempDir,
    port: u16,
}

impl PostgresCluster {
    /// Starts a cluster that listens at a free port of 127.0.0.1.
    pub fn start() -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let cluster = Self { directory: tempfile::tempdir().expect("a directory"), port };
        cluster.start_again();
        cluster
    }

    /// The address of its first database.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts it again after [`PostgresCluster::stop`].
    pub fn start_again(&self) {
        run(&["start", self.path(), &self.port.to_string()]);
    }

    /// Stops it: `smart`, `fast` or `immediate`.
    pub fn stop(&self, mode: &str) {
        run(&["stop", self.path(), mode]);
    }

    /// The processes of the cluster, to be stopped and continued: the first one first.
    pub fn processes(&self) -> Vec<u32> {
        let pid = self.directory.path().join("data/postmaster.pid");
        let text = std::fs::read_to_string(pid).expect("the cluster runs");
        let first: u32 = text.lines().next().and_then(|line| line.parse().ok()).expect("a number");
        let children = Command::new("pgrep").args(["-P", &first.to_string()]).output();
        let children = String::from_utf8(children.expect("pgrep runs").stdout).expect("numbers");
        std::iter::once(first)
            .chain(children.lines().filter_map(|line| line.parse().ok()))
            .collect()
    }

    /// Sends a signal (`STOP`, `CONT`) to every process of the cluster.
    pub fn signal(&self, signal: &str) {
        for process in self.processes() {
            // A child may have ended meanwhile.
            let _sent = Command::new("kill").args(["-s", signal, &process.to_string()]).output();
        }
    }

    /// Runs a statement in its first database.
    pub fn execute(&self, sql: &str) -> String {
        let port = self.port.to_string();
        let mut client = client(self.directory.path(), "postgres", sql);
        answer(client.args(["-p", &port]))
    }

    fn path(&self) -> &str {
        self.directory.path().to_str().expect("a path of ASCII")
    }
}

impl Drop for PostgresCluster {
    fn drop(&mut self) {
        if self.directory.path().join("data/postmaster.pid").exists() {
            self.signal("CONT");
        }
        run(&["stop", self.path(), "immediate"]);
    }
}

fn run(arguments: &[&str]) {
    let output = Command::new(program()).args(arguments).output().expect("bash runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/postgres-cluster")
}

/// The directory of the shared cluster.
fn shared_cluster() -> PathBuf {
    let output = Command::new(program()).arg("ensure").output().expect("bash runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "this test needs PostgreSQL: {said}");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

fn client(host: &Path, database: &str, sql: &str) -> Command {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres"]);
    psql.arg("-h").arg(host).args(["-d", database, "-c", sql]);
    psql.env_remove("PGPORT").env_remove("PGOPTIONS");
    psql
}

fn psql(host: &Path, database: &str, sql: &str) -> String {
    answer(&mut client(host, database, sql))
}

fn answer(client: &mut Command) -> String {
    let output = client.output().expect("this test needs psql: run e2e/install-postgres.sh");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}
