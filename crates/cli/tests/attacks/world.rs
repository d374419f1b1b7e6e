//! Shared support: configurations, keys, the fixture, and the resource use of a process.

use crate::support::{Home, Serve, dynamic, yaml};

/// A configuration of these servers with further sections, such as `gateway: {...}`.
pub(crate) fn config(servers: &[String], sections: &[&str]) -> String {
    config_with(&[], servers, sections)
}

pub(crate) fn config_with(tools: &[&str], servers: &[String], sections: &[&str]) -> String {
    let sections: Vec<String> = sections.iter().map(|section| format!("  {section}\n")).collect();
    format!("{}{}", yaml(tools, servers), sections.concat())
}

pub(crate) fn home(servers: &[(&str, &str)], sections: &[&str]) -> Home {
    let servers: Vec<String> = servers.iter().map(|(name, url)| dynamic(name, url)).collect();
    Home::new(config(&servers, sections))
}

/// A new API key.
pub(crate) fn key(home: &Home, name: &str, role: &str) -> String {
    let made = home.line(&format!("key add {name} --role {role} --json")).expect(0).json();
    made["key"].as_str().unwrap().to_owned()
}

/// How many tasks the program has just now, by its own account. One of them answers this question.
pub(crate) async fn tasks(serve: &Serve) -> usize {
    let page = serve.text("/metrics").await;
    let line = page.lines().find_map(|line| line.strip_prefix("switchboard_tasks "));
    line.unwrap_or_else(|| panic!("no count of tasks in\n{page}")).parse().unwrap()
}

/// The database works in a thread for each connection. There are up to four; they come when they are needed and stay for a
/// minute.
pub(crate) const DATABASE_THREADS: usize = 4;

/// What a process holds just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holdings {
    pub(crate) rss_kb: u64,
    pub(crate) threads: usize,
    pub(crate) sockets: usize,
    pub(crate) children: usize,
}

impl Holdings {
    pub(crate) fn of(pid: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let number = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        let sockets = links.filter(|link| link.to_string_lossy().starts_with("socket:"));
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let children = tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
            .map(|children| children.split_whitespace().count());
        Self {
            rss_kb: number("VmRSS:"),
            threads: usize::try_from(number("Threads:")).unwrap(),
            sockets: sockets.count(),
            children: children.sum(),
        }
    }
}
