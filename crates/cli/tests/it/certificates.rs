//! Certificates made with openssl, as administrators make them.

use std::path::{Path, PathBuf};
use std::process::Command;

use reqwest::Client;

/// An authority and its files in a directory.
pub(crate) struct Authority {
    directory: PathBuf,
}

impl Authority {
    pub(crate) fn new(directory: &Path) -> Self {
        let authority = Self { directory: directory.to_owned() };
        authority.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
             -subj /CN=authority -keyout ca.key -out ca.pem",
        );
        std::fs::write(directory.join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
            .unwrap();
        authority
    }

    /// Makes `NAME.pem` and `NAME.key`.
    pub(crate) fn issue(&self, name: &str, days: i32) {
        self.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={name} \
             -keyout {name}.key -out {name}.csr"
        ));
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} \
             -extfile names -out {name}.pem"
        ));
    }

    /// Makes the pair the one that the server is configured with.
    pub(crate) fn install(&self, name: &str) {
        self.install_file(&format!("{name}.pem"), "cert.pem");
        self.install_file(&format!("{name}.key"), "key.pem");
    }

    pub(crate) fn install_file(&self, from: &str, to: &str) {
        let draft = self.directory.join("draft");
        std::fs::copy(self.directory.join(from), &draft).unwrap();
        std::fs::rename(draft, self.directory.join(to)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn client(&self) -> reqwest::ClientBuilder {
        let ca = std::fs::read(self.directory.join("ca.pem")).unwrap();
        let ca = reqwest::Certificate::from_pem(&ca).unwrap();
        Client::builder().no_proxy().tls_certs_only([ca])
    }

    pub(crate) fn identity(&self, name: &str) -> reqwest::Identity {
        let read =
            |end: &str| std::fs::read_to_string(self.path(&format!("{name}.{end}"))).unwrap();
        reqwest::Identity::from_pem((read("pem") + &read("key")).as_bytes()).unwrap()
    }

    fn openssl(&self, line: &str) {
        let mut openssl = Command::new("openssl");
        let done = openssl.args(line.split_whitespace()).current_dir(&self.directory).output();
        let done = done.unwrap_or_else(|error| panic!("openssl is needed: {error}"));
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// The subject of the certificate that openssl sees at this address.
pub(crate) fn served_subject(url: &str) -> String {
    let address = url.strip_prefix("https://").unwrap();
    let line = format!(
        "openssl s_client -connect {address} </dev/null 2>/dev/null | openssl x509 -noout -subject"
    );
    let done = Command::new("sh").args(["-c", &line]).output().unwrap();
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}
