//! The key of the store in the keyring of the operating system.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use switchboard_test_support::{FakeAuthServer, wait_until};

use crate::support::{Home, PATIENCE};

const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";
const PROGRAMS: [&str; 4] = ["dbus-daemon", "dbus-send", "gnome-keyring-daemon", "secret-tool"];

fn home(office: &FakeAuthServer) -> Home {
    let url = office.url();
    Home::new(format!(
        "switchboard:\n  security: {{store_key: 'keyring:store-key'}}\n  toolbox:\n    mcps:\n      - {{name: office, url: \
         \"{url}\", mode: dynamic, default_tool_config: {{}}, auth: {{oauth: {{}}}}}}\n"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_keyring_the_start_fails_and_names_the_way_out() {
    let office = FakeAuthServer::open().await;
    let nowhere = tempfile::tempdir().unwrap();
    let address = format!("unix:path={}/bus", nowhere.path().display());
    let home = home(&office).with_variable(BUS, address);
    for line in ["check", "auth login office --no-browser", "serve"] {
        let refused = home.line(line).expect(1);
        for said in [
            "cannot read switchboard.security.store_key from the keyring entry `store-key`: no keyring answers",
            "a service without a session can use `file:/path` or `${VAR}`",
        ] {
            assert!(refused.stderr.contains(said), "{line}: {}", refused.stderr);
        }
    }
    assert_eq!(office.signed_in(), 0);
}

/// A D-Bus session with a keyring. Its processes end with it.
struct Session {
    directory: tempfile::TempDir,
    programs: Vec<Child>,
}

impl Drop for Session {
    fn drop(&mut self) {
        for program in &mut self.programs {
            program.kill().ok();
            program.wait().ok();
        }
    }
}

impl Session {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut session = Self { directory, programs: Vec::new() };
        // Without directories of services: the bus starts no second keyring.
        let config = session.directory.path().join("bus.conf");
        let listen = session.address();
        let text = format!(
            "<busconfig><type>session</type><listen>{listen}</listen><policy context=\"default\"><allow \
             send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>"
        );
        std::fs::write(&config, text).unwrap();
        let config = format!("--config-file={}", config.display());
        session
            .programs
            .push(session.command("dbus-daemon", &["--nofork", &config]).spawn().unwrap());
        let socket = session.directory.path().join("bus");
        wait_until(PATIENCE, async || socket.exists().then_some(())).await;
        let arguments = ["--foreground", "--unlock", "--components=secrets"];
        let mut keyring = session.command("gnome-keyring-daemon", &arguments).spawn().unwrap();
        keyring.stdin.take().unwrap().write_all(b"password").unwrap();
        session.programs.push(keyring);
        session
    }

    fn address(&self) -> String {
        format!("unix:path={}/bus", self.directory.path().display())
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env(BUS, self.address()).stdin(Stdio::piped());
        for variable in ["HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
            command.env(variable, self.directory.path());
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Whether `secret-tool` succeeds with this input.
    fn secret_tool(&self, arguments: &[&str], input: &str) -> bool {
        let mut child = self.command("secret-tool", arguments).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait().unwrap().success()
    }

    /// Locks the keyring, as the end of a desktop session does.
    fn lock(&self) {
        let service = "/org/freedesktop/secrets";
        let collection = format!("array:objpath:{service}/collection/login");
        let call = [
            "--session",
            "--print-reply",
            "--dest=org.freedesktop.secrets",
            service,
            "org.freedesktop.Secret.Service.Lock",
            &collection,
        ];
        assert!(self.command("dbus-send", &call).status().unwrap().success());
    }

    async fn store(&self, name: &str, key: &str) {
        let attributes = ["service", "switchboard", "username", name];
        let arguments = [&["store", "--label=Switchboard"][..], &attributes].concat();
        wait_until(PATIENCE, async || self.secret_tool(&arguments, key).then_some(())).await;
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| Path::new(&directory).join(program).is_file())
}

/// Runs where a keyring is installed (`apt install dbus gnome-keyring libsecret-tools`).
#[tokio::test(flavor = "multi_thread")]
async fn a_real_keyring_has_the_key_of_the_store() {
    if let Some(missing) = PROGRAMS.iter().find(|program| !is_installed(program)) {
        eprintln!("not tried: {missing} is not installed");
        return;
    }
    let (office, session) = (FakeAuthServer::open().await, Session::start().await);
    session.store("another", &"0b".repeat(32)).await;
    let home = home(&office).with_variable(BUS, session.address());
    let missing = home.line("check").expect(1).stderr;
    assert!(missing.contains("the keyring has no such entry"), "{missing}");
    assert!(missing.contains("username store-key"), "{missing}");

    session.store("store-key", &"0a".repeat(32)).await;
    super::auth::login(&home, &[]).await;
    let status = home.line("auth status --json").expect(0).json();
    assert_eq!(status["servers"][0]["is_encrypted"], true);
    assert!(!home.line("config show").expect(0).stdout.contains("0a0a"));

    session.store("store-key", "hunter2-s3cret").await;
    let bad = home.line("check").expect(1).stderr;
    assert!(bad.contains("is not a key of 32 bytes") && !bad.contains("hunter2"), "{bad}");
    session.store("store-key", &"0a".repeat(32)).await;
    session.lock();
    let locked = home.line("check").expect(1).stderr;
    assert!(locked.contains("the keyring is locked"), "{locked}");
}
