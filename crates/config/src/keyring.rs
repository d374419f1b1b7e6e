//! `keyring:NAME` references of store keys, and why one cannot be read.

use switchboard_model::Secret;

use crate::path::Path;
use crate::problem::{BoxedProblem, ConfigProblem};
use crate::template::Expanded;

/// Reads the text of the keyring entry with this name.
pub type KeyringReader<'a> = &'a dyn Fn(&str) -> Result<String, KeyringFault>;

/// Why an entry of the keyring of the operating system cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringFault {
    #[error("keyrings are not supported on this operating system")]
    Unsupported,
    #[error("no keyring answers ({0})")]
    Unreachable(String),
    #[error("the keyring has no such entry")]
    NoEntry,
    #[error("the keyring has {0} such entries")]
    SeveralEntries(usize),
    #[error("the keyring is locked")]
    Locked,
    #[error("the entry is not a text")]
    NotText,
}

impl KeyringFault {
    fn help(&self, name: &str) -> String {
        match self {
            Self::Unsupported => "use `file:/path` or `${VAR}`".into(),
            Self::Unreachable(_) => "a keyring needs the D-Bus session of a signed-in user and a Secret Service in it, such \
                                     as GNOME Keyring, KWallet or KeePassXC; a service without a session can use `file:/path` \
                                     or `${VAR}`"
                .into(),
            Self::NoEntry | Self::NotText => format!(
                "make one with `openssl rand -base64 32 | secret-tool store --label=Switchboard service switchboard \
                 username {name}`"
            ),
            Self::SeveralEntries(_) => format!(
                "`secret-tool search --all service switchboard username {name}` lists them; keep one"
            ),
            Self::Locked => "unlock it, then try again".into(),
        }
    }
}

/// Reads the key that a `keyring:` reference names.
pub(crate) fn read_reference(
    name: &str,
    path: &Path,
    reader: Option<KeyringReader<'_>>,
) -> Result<Expanded, BoxedProblem> {
    if name.trim().is_empty() {
        let message = format!("{path} names no entry of the keyring");
        let help = "write `keyring:` and a name, such as `keyring:store-key`";
        return Err(Box::new(ConfigProblem::error(message).help(help)));
    }
    let read = reader.ok_or(KeyringFault::Unsupported).and_then(|reader| reader(name));
    let text = read.map_err(|fault| {
        let message = format!("cannot read {path} from the keyring entry `{name}`: {fault}");
        Box::new(ConfigProblem::error(message).help(fault.help(name)))
    })?;
    let values = vec![Secret::new(text.as_str())];
    Ok(Expanded { text, substituted: true, values, of_caller: None })
}
