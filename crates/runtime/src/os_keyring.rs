//! Reads entries of the keyring of the operating system: on Linux, those of the Secret Service of the user's D-Bus session.

use switchboard_config::KeyringFault;

/// The text of an entry of the service `switchboard`. A locked keyring is not unlocked: that would show a dialogue, for which
/// a process in the background would wait.
#[cfg(not(target_os = "linux"))]
pub(crate) fn read(_name: &str) -> Result<String, KeyringFault> {
    Err(KeyringFault::Unsupported)
}

/// The text of an entry of the service `switchboard`. A locked keyring is not unlocked: that would show a dialogue, for which
/// a process in the background would wait.
#[cfg(target_os = "linux")]
pub(crate) fn read(name: &str) -> Result<String, KeyringFault> {
    secret_service::read(name)
}

#[cfg(target_os = "linux")]
mod secret_service {
    use std::collections::HashMap;
    use std::time::Duration;

    use secret_service::{EncryptionType, Error, SecretService};
    use switchboard_config::KeyringFault;

    /// The value of the attribute `service` of all entries. Like `username`, it is one that most programs use.
    const SERVICE: &str = "switchboard";
    /// How long the Secret Service may take.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Waits on a thread of its own, because a configuration is also loaded inside of tasks.
    pub(super) fn read(name: &str) -> Result<String, KeyringFault> {
        let unreachable = |error: std::io::Error| KeyringFault::Unreachable(error.to_string());
        std::thread::scope(|scope| {
            let waiting = std::thread::Builder::new().name("keyring".into());
            let thread = waiting.spawn_scoped(scope, || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(unreachable)?;
                let answer =
                    runtime.block_on(async { tokio::time::timeout(PATIENCE, entry(name)).await });
                answer.unwrap_or_else(|_| {
                    Err(KeyringFault::Unreachable(format!("no answer in {PATIENCE:?}")))
                })
            });
            let joined = thread.map_err(unreachable)?.join();
            joined.unwrap_or_else(|_| Err(KeyringFault::Unreachable("its client failed".into())))
        })
    }

    async fn entry(name: &str) -> Result<String, KeyringFault> {
        let service = SecretService::connect(EncryptionType::Dh).await.map_err(fault)?;
        let attributes = HashMap::from([("service", SERVICE), ("username", name)]);
        let found = service.search_items(attributes).await.map_err(fault)?;
        let (unlocked, locked) = (found.unlocked.as_slice(), found.locked.as_slice());
        let item = match (unlocked, locked) {
            ([item], []) => item,
            ([], []) => return Err(KeyringFault::NoEntry),
            ([], [_]) => return Err(KeyringFault::Locked),
            _ => return Err(KeyringFault::SeveralEntries(unlocked.len() + locked.len())),
        };
        let secret = item.get_secret().await.map_err(fault)?;
        String::from_utf8(secret).map_err(|_| KeyringFault::NotText)
    }

    fn fault(error: Error) -> KeyringFault {
        match error {
            Error::Locked => KeyringFault::Locked,
            error => KeyringFault::Unreachable(error.to_string()),
        }
    }
}
