//! Each rule of admission, including strict and dynamic mode and the merge of limits, has its test here.

use std::time::Duration;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use switchboard_model::{BUILT_IN_LIMITS, DiscoveredFrom, PromptToolPlan, RootKey};

use super::*;
use crate::test_plans::server;
use crate::{Catalog, Level};

const SECOND: Duration = Duration::from_secs(1);

fn limits(max_instances: Option<u32>, timeout: Option<u32>) -> LimitsOverlay {
    LimitsOverlay { max_instances, timeout: timeout.map(|n| SECOND * n), ..Default::default() }
}

fn entry(name: &str, max_instances: Option<u32>, timeout: Option<u32>) -> ToolEntry {
    ToolEntry { limits: limits(max_instances, timeout), ..ToolEntry::named(name) }
}

/// A test board: the configuration, the built-in tools, and the offer of each server.
struct Board {
    plan: Plan,
    local: Vec<ToolDescriptor>,
    offered: Vec<Option<Vec<ToolDescriptor>>>,
    before: Vec<Option<HashSet<String>>>,
}

fn board(tools: Vec<ToolEntry>) -> Board {
    Board {
        plan: Plan {
            root: RootKey::Myai,
            max_concurrent: 10,
            tools,
            servers: vec![],
            local_tools: LocalToolChoice::NamedInTools,
            ..Plan::default()
        },
        local: vec![ToolDescriptor::named("sum_numbers"), ToolDescriptor::named("current_time")],
        offered: vec![],
        before: vec![],
    }
}

impl Board {
    fn offers(mut self, server: ServerPlan, tools: &[&str]) -> Self {
        self.plan.servers.push(server);
        self.offered.push(Some(tools.iter().map(|name| ToolDescriptor::named(*name)).collect()));
        self.before.push(None);
        self
    }

    fn had(mut self, tools: &[&str]) -> Self {
        *self.before.last_mut().unwrap() = Some(tools.iter().map(|name| (*name).into()).collect());
        self
    }

    fn admit(&self) -> Admission {
        let offers: Vec<_> = (self.plan.servers.iter().zip(&self.offered).zip(&self.before))
            .map(|((plan, tools), before)| Offer {
                plan,
                tools: tools.as_deref(),
                available: true,
                before: before.as_ref(),
                quarantined: &[],
            })
            .collect();
        admit(&self.plan, &self.local, &offers)
    }

    /// `name: max_instances, timeout` of every admitted tool.
    #[track_caller]
    fn registers(&self, expected: &[&str]) -> Admission {
        let admission = self.admit();
        assert_eq!(violations(&admission), Vec::<String>::new());
        let shown: Vec<_> = admission
            .tools
            .iter()
            .map(|tool| {
                let limits = tool.limits;
                format!("{}: {}, {}s", tool.name, limits.max_instances, limits.timeout.as_secs())
            })
            .collect();
        assert_eq!(shown, expected);
        admission
    }
}

fn violations(admission: &Admission) -> Vec<String> {
    admission.violations.iter().map(ToString::to_string).collect()
}

fn told(admission: &Admission, level: Level) -> Vec<String> {
    let notices = admission.notices.iter().filter(|notice| notice.level() == level);
    notices.map(ToString::to_string).collect()
}

use AdmissionMode::{Dynamic, Strict};

#[test]
fn strict_all_mcp_tools_configured_is_a_success() {
    let admission = board(vec![entry("get_customer", Some(10), None)])
        .offers(server("customers", Strict), &["get_customer"])
        .registers(&["customers.get_customer: 10, 30s"]);
    assert_eq!(
        told(&admission, Level::Debug),
        ["Tool 'get_customer' registered with explicit configuration: \
             {max_instances=10, timeout=30s, max_timeout=10m, queue_timeout=30s, max_result_bytes=1048576}"]
    );
}

#[test]
fn strict_unconfigured_tool_is_an_error_with_the_detailed_message() {
    let admission = board(vec![entry("a", None, None), entry("b", None, None)])
        .offers(server("customers", Strict), &["a", "b", "get_customer"])
        .admit();
    insta::assert_snapshot!(violations(&admission).join("\n---\n"), @r"
    Tool 'get_customer' from MCP server 'customers' is not configured in the toolbox.

    MCP Server: customers
    Mode: strict
    Missing Tool: get_customer

    Configured tools: ['a', 'b']

    To resolve:
    1. Add the tool to myai.toolbox.tools in your configuration, OR
    2. Change the MCP server mode to 'dynamic' and provide default_tool_config
    ");
}

#[test]
fn three_unconfigured_tools_on_two_strict_servers_are_all_reported() {
    let admission = board(vec![])
        .offers(server("one", Strict), &["a", "b"])
        .offers(server("two", Strict), &["c"])
        .admit();
    let named: Vec<_> = admission
        .violations
        .iter()
        .map(|violation| format!("{}.{}", violation.server().unwrap(), violation.tool()))
        .collect();
    assert_eq!(named, ["one.a", "one.b", "two.c"]);
}

#[test]
fn strict_configured_tool_no_longer_in_mcp_is_a_warning_and_not_registered() {
    let admission = board(vec![entry("kept", None, None), entry("gone", None, None)])
        .offers(server("customers", Strict), &["kept"])
        .had(&["kept", "gone"])
        .registers(&["customers.kept: 5, 30s"]);
    assert_eq!(
        told(&admission, Level::Warning),
        ["Tool 'gone' was configured but is no longer available from MCP server 'customers'"]
    );
}

#[test]
fn local_tool_configured_is_a_success() {
    board(vec![entry("sum_numbers", Some(20), None)]).registers(&["local.sum_numbers: 20, 30s"]);
}

#[test]
fn local_tool_not_configured_is_an_error() {
    let mut board = board(vec![entry("sum_numbers", None, None)]);
    board.plan.local_tools = LocalToolChoice::All;
    insta::assert_snapshot!(violations(&board.admit()).join("\n---\n"), @r"
    Tool 'current_time' (local tool) is not configured in the toolbox.

    Local tools must always be explicitly configured in myai.toolbox.tools.

    Configured tools: ['sum_numbers']
    ");
}

#[test]
fn local_tools_without_the_key_are_those_that_tools_names() {
    board(vec![]).registers(&[]);
    board(vec![entry("local.sum_numbers", Some(2), None)])
        .registers(&["local.sum_numbers: 2, 30s"]);
}

#[test]
fn local_tools_that_do_not_exist_are_an_error() {
    let mut board = board(vec![entry("sum_numbers", None, None)]);
    board.plan.local_tools = LocalToolChoice::Only(vec!["sum_numbers".into(), "nope".into()]);
    insta::assert_snapshot!(violations(&board.admit()).join("\n---\n"), @r"
    Tool 'nope' in myai.toolbox.local_tools is not a local tool.

    Local tools of this program: ['sum_numbers', 'current_time']
    ");
}

#[test]
fn local_tools_are_strict_even_when_a_server_of_that_tool_is_dynamic() {
    let mut board = board(vec![]).offers(server("customers", Dynamic), &["current_time"]);
    board.plan.local_tools = LocalToolChoice::Only(vec!["current_time".into()]);
    let admission = board.admit();
    assert_eq!(admission.violations.len(), 1);
    assert_eq!(admission.violations[0].server(), None);
    assert_eq!(admission.violations[0].tool(), "current_time");
}

#[test]
fn dynamic_tool_not_configured_uses_the_default_config() {
    let admission = board(vec![])
        .offers(server("customers", Dynamic), &["get_customer"])
        .registers(&["customers.get_customer: 9, 99s"]);
    assert_eq!(
        told(&admission, Level::Info),
        [
            "Tool 'get_customer' from MCP 'customers' not explicitly configured, using default configuration"
        ]
    );
    assert_eq!(admission.tools[0].configured, Configured::Default);
}

#[test]
fn dynamic_tool_configured_is_merged_with_the_defaults() {
    let admission = board(vec![entry("get_customer", Some(1), None)])
        .offers(server("customers", Dynamic), &["get_customer"])
        .registers(&["customers.get_customer: 1, 99s"]);
    assert_eq!(
        told(&admission, Level::Debug),
        ["Tool 'get_customer' configuration merged: explicit={max_instances=1}, \
          default={max_instances=9, timeout=1m39s}, \
          final={max_instances=1, timeout=1m39s, max_timeout=10m, queue_timeout=1m39s, max_result_bytes=1048576}"]
    );
    assert_eq!(admission.tools[0].configured, Configured::Merged);
}

#[test]
fn dynamic_new_tool_appears_and_is_registered_with_defaults() {
    let admission = board(vec![entry("told", None, None)])
        .offers(server("customers", Dynamic), &["old", "new", "told"])
        .had(&["old"])
        .registers(&["customers.old: 9, 99s", "customers.new: 9, 99s", "customers.told: 9, 99s"]);
    assert_eq!(
        told(&admission, Level::Info),
        [
            "Tool 'old' from MCP 'customers' not explicitly configured, using default configuration",
            "New tool 'new' discovered from MCP server 'customers', registering with default configuration",
            "Tool 'new' from MCP 'customers' not explicitly configured, using default configuration",
        ]
    );
}

#[test]
fn dynamic_configured_tool_removed_is_a_warning_and_not_registered() {
    let admission = board(vec![entry("gone", None, None)])
        .offers(server("customers", Dynamic), &[])
        .had(&["gone", "unconfigured"])
        .registers(&[]);
    assert_eq!(
        told(&admission, Level::Warning),
        [
            "MCP server 'customers' at customers-command returned no tools",
            "Tool 'gone' was configured but is no longer available from MCP server 'customers'",
            "Tool 'unconfigured' was configured but is no longer available from MCP server 'customers'",
        ]
    );
}

/// A server that a source names: in a file on this machine, or elsewhere.
fn discovered(name: &str, mode: AdmissionMode, is_foreign: bool) -> ServerPlan {
    let mut plan = server(name, mode);
    let from = DiscoveredFrom { source: "team".into(), original_name: name.into() };
    plan.discovered = Some(from);
    plan.spec.egress = is_foreign.then(Arc::default);
    plan
}

#[test]
fn an_entry_without_a_server_only_disables_tools_of_foreign_servers() {
    let secret = || ToolEntry { arguments: Some(vec![]), ..entry("t", Some(1), Some(2)) };
    let disabled = || ToolEntry { enabled: false, ..entry("t", None, None) };
    let foreign = |mode| discovered("s", mode, true);
    board(vec![secret()]).offers(foreign(Dynamic), &["t"]).registers(&["s.t: 9, 99s"]);
    board(vec![secret()]).offers(foreign(Strict), &["t"]).registers(&[]);
    board(vec![disabled()]).offers(foreign(Dynamic), &["t"]).registers(&[]);
    let here = discovered("s", Dynamic, false);
    board(vec![secret()]).offers(here, &["t"]).registers(&["s.t: 1, 2s"]);
    let addressed = ToolEntry { name: "s.t".into(), ..secret() };
    board(vec![addressed]).offers(foreign(Strict), &["t"]).registers(&["s.t: 1, 2s"]);
}

#[test]
fn a_discovered_server_takes_no_bare_name_from_the_file() {
    let admission = board(vec![])
        .offers(server("mine", Dynamic), &["t"])
        .offers(discovered("found", Dynamic, false), &["t", "only_there"])
        .registers(&["found.t: 9, 99s", "found.only_there: 9, 99s", "mine.t: 9, 99s"]);
    let catalog = Catalog::new(1, admission.tools.into_iter().map(Arc::new).collect());
    assert_eq!(catalog.resolve("t").unwrap().name.as_str(), "mine.t");
    assert_eq!(catalog.resolve("only_there").unwrap().name.as_str(), "found.only_there");
}

#[test]
fn merging_explicit_over_all_some_and_no_default_fields() {
    let merge = |tools: Vec<ToolEntry>, expected: &str| {
        board(tools).offers(server("s", Dynamic), &["t"]).registers(&[expected]);
    };
    merge(vec![entry("t", Some(1), Some(2))], "s.t: 1, 2s");
    merge(vec![entry("t", Some(1), None)], "s.t: 1, 99s");
    merge(vec![entry("t", None, Some(2))], "s.t: 9, 2s");
    merge(vec![entry("t", None, None)], "s.t: 9, 99s");
    merge(vec![], "s.t: 9, 99s");
}

#[test]
fn an_empty_default_tool_config_means_the_built_in_limits() {
    let mut plan = server("s", Dynamic);
    plan.default_limits = Some(LimitsOverlay::default());
    let admission = board(vec![]).offers(plan, &["t"]).registers(&["s.t: 5, 30s"]);
    assert_eq!(admission.tools[0].limits, BUILT_IN_LIMITS);
}

#[test]
fn strict_ignores_a_default_tool_config() {
    let mut plan = server("s", Strict);
    plan.default_limits = Some(limits(Some(9), Some(99)));
    board(vec![entry("t", Some(1), None)]).offers(plan, &["t"]).registers(&["s.t: 1, 30s"]);
}

#[test]
fn a_tool_can_override_the_mode_of_its_server_both_ways() {
    let strict = ToolEntry { mode: Some(Strict), ..entry("t", Some(1), None) };
    board(vec![strict]).offers(server("s", Dynamic), &["t"]).registers(&["s.t: 1, 30s"]);
    let dynamic = ToolEntry { mode: Some(Dynamic), ..entry("t", Some(1), None) };
    let mut plan = server("s", Strict);
    plan.default_limits = Some(limits(Some(9), Some(99)));
    board(vec![dynamic]).offers(plan, &["t"]).registers(&["s.t: 1, 99s"]);
}

#[test]
fn mcp_returns_no_tools_is_a_warning_and_the_start_goes_on() {
    let admission = board(vec![]).offers(server("s", Strict), &[]).registers(&[]);
    assert_eq!(told(&admission, Level::Warning), ["MCP server 's' at s-command returned no tools"]);
}

#[test]
fn a_hundred_tools_of_which_five_are_configured() {
    let names: Vec<String> = (0..100).map(|n| format!("tool_{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let entries = names.iter().take(5).map(|name| entry(name, Some(2), None)).collect();
    let admission = board(entries).offers(server("s", Dynamic), &names).admit();
    let explicit = admission.tools.iter().filter(|tool| tool.limits.max_instances == 2).count();
    assert_eq!((admission.tools.len(), explicit), (100, 5));
    assert_eq!(told(&admission, Level::Info).len(), 95);
}

#[test]
fn tool_configured_but_not_returned_by_any_mcp_is_a_warning() {
    let one = board(vec![entry("ghost", None, None)]).offers(server("a", Dynamic), &["t"]).admit();
    assert_eq!(
        told(&one, Level::Warning),
        ["Tool 'ghost' is configured in the toolbox, but no MCP server offers it"]
    );
    let entries = vec![entry("ghost", None, None), entry("b.phantom", None, None)];
    let two = board(entries)
        .offers(server("a", Dynamic), &["t"])
        .offers(server("b", Dynamic), &["u"])
        .admit();
    assert_eq!(
        told(&two, Level::Warning),
        [
            "Tool 'ghost' is configured in the toolbox, but no MCP server offers it",
            "Tool 'phantom' is configured for MCP server 'b', which does not offer it",
        ]
    );
}

#[test]
fn nothing_is_called_missing_while_a_server_has_never_been_seen() {
    let mut board = board(vec![entry("ghost", None, None)]).offers(server("a", Dynamic), &["t"]);
    board.plan.servers.push(server("dead", Dynamic));
    board.offered.push(None);
    board.before.push(None);
    assert_eq!(told(&board.admit(), Level::Warning), Vec::<String>::new());
}

#[test]
fn switching_from_strict_to_dynamic_admits_what_was_refused() {
    let strict = board(vec![]).offers(server("s", Strict), &["t"]).admit();
    assert_eq!((strict.tools.len(), strict.violations.len()), (0, 1));
    board(vec![]).offers(server("s", Dynamic), &["t"]).registers(&["s.t: 9, 99s"]);
}

#[test]
fn collision_between_servers_last_registered_wins_with_a_warning_where_bare_names_are_used() {
    let mut board = board(vec![])
        .offers(server("a", Dynamic), &["search"])
        .offers(server("b", Dynamic), &["search"]);
    let registered = ["a.search: 9, 99s", "b.search: 9, 99s"];
    let said = "Tool name 'search' is used by 'a.search' and 'b.search': the bare name means 'b.search', \
                'a.search' is reached by its full name";
    let admission = board.registers(&registered);
    assert_eq!(told(&admission, Level::Warning), Vec::<String>::new());
    assert_eq!(told(&admission, Level::Debug), [said]);
    board.plan.gateway.naming = Naming::Bare;
    assert_eq!(told(&board.registers(&registered), Level::Warning), [said]);
}

#[test]
fn collision_between_local_and_mcp_tools_warns_too() {
    let mut board =
        board(vec![entry("sum_numbers", None, None)]).offers(server("a", Strict), &["sum_numbers"]);
    board.plan.gateway.naming = Naming::Bare;
    let admission = board.registers(&["local.sum_numbers: 5, 30s", "a.sum_numbers: 5, 30s"]);
    assert_eq!(told(&admission, Level::Warning).len(), 1);
}

#[test]
fn an_entry_for_one_server_admits_no_tool_of_another_that_is_literally_called_so() {
    let refund = || board(vec![entry("billing.refund", Some(1), None)]);
    // An entry `server.tool` does not configure a tool of another server, even if that tool's name contains a dot.
    let admission = refund()
        .offers(server("billing", Strict), &["refund"])
        .offers(server("other", Strict), &["billing.refund"])
        .admit();
    let refused: Vec<_> =
        admission.violations.iter().map(|it| it.server().unwrap().as_str()).collect();
    assert_eq!(refused, ["other"]);
    // The entry does not limit that tool either.
    refund()
        .offers(server("billing", Dynamic), &["refund", "billing.refund"])
        .offers(server("other", Dynamic), &["billing.refund"])
        .registers(&[
            "billing.refund: 1, 99s",
            "billing.billing.refund: 9, 99s",
            "other.billing.refund: 9, 99s",
        ]);
    // Each tool is addressed by its canonical name.
    board(vec![
        entry("billing.refund", Some(1), None),
        entry("other.billing.refund", Some(2), None),
    ])
    .offers(server("billing", Strict), &["refund"])
    .offers(server("other", Strict), &["billing.refund"])
    .registers(&["billing.refund: 1, 30s", "other.billing.refund: 2, 30s"]);
    // If no server has that name, the dot is part of the tool's name.
    refund()
        .offers(server("other", Strict), &["billing.refund"])
        .registers(&["other.billing.refund: 1, 30s"]);
}

#[test]
fn an_entry_that_nobody_offers_is_told_as_what_it_is() {
    let entries = || vec![entry("ghost", None, None), entry("a.ghost", None, None)];
    let two =
        || board(entries()).offers(server("a", Strict), &[]).offers(server("b", Dynamic), &["t"]);
    let warnings = |board: Board| {
        let mut told = told(&board.admit(), Level::Warning);
        told.retain(|line| line.contains("ghost"));
        told
    };
    let nobody = "Tool 'ghost' is configured in the toolbox, but no MCP server offers it";
    let not_a = "Tool 'ghost' is configured for MCP server 'a', which does not offer it";
    let gone = "Tool 'ghost' was configured but is no longer available from MCP server";
    assert_eq!(warnings(two()), [nobody, not_a]);
    // "No longer available" is only for tools that existed before, and names the server that had them.
    assert_eq!(warnings(two().had(&["ghost"])), [format!("{gone} 'b'"), not_a.into()]);
    // A server that was never listed may offer it, so there is no notice.
    let mut unheard = two();
    unheard.offered[1] = None;
    assert_eq!(warnings(unheard), [not_a]);
}

#[test]
fn allow_and_deny_lists_decide_before_the_mode_does() {
    let mut plan = server("s", Strict);
    plan.tool_allowlist = Some(vec!["get_*".into(), "lost".into()]);
    plan.tool_denylist = vec!["get_secret".into()];
    let admission = board(vec![entry("get_customer", None, None)])
        .offers(plan, &["get_customer", "get_secret", "delete_customer"])
        .registers(&["s.get_customer: 5, 30s"]);
    assert_eq!(
        told(&admission, Level::Warning),
        ["tool_allowlist of MCP server 's' names tool 'lost', which the server does not have"]
    );
}

#[test]
fn an_address_with_a_server_wins_field_by_field_over_the_bare_one() {
    board(vec![entry("t", Some(1), Some(2)), entry("b.t", Some(3), None)])
        .offers(server("a", Strict), &["t"])
        .offers(server("b", Strict), &["t"])
        .registers(&["a.t: 1, 2s", "b.t: 3, 2s"]);
}

#[test]
fn a_disabled_tool_is_configured_but_not_there() {
    let off = ToolEntry { enabled: false, ..entry("t", None, None) };
    let admission = board(vec![off]).offers(server("s", Strict), &["t"]).registers(&[]);
    assert_eq!(told(&admission, Level::Warning), Vec::<String>::new());
}

#[test]
fn an_entry_can_replace_the_description_and_name_the_tool_for_renderings() {
    let told = ToolEntry {
        description: Some("ours".into()),
        expose_as: Some("customer".into()),
        arguments: Some(vec![]),
        ..entry("t", None, None)
    };
    let admission = board(vec![told]).offers(server("s", Strict), &["t"]).admit();
    let tool = &admission.tools[0];
    assert_eq!(tool.descriptor.description.as_deref(), Some("ours"));
    assert_eq!((tool.expose_as.as_deref(), &tool.arguments), (Some("customer"), &Some(vec![])));
    assert_eq!((tool.toolset.as_str(), tool.mode), ("s", Strict));
}

#[test]
fn one_server_that_lists_a_name_twice_gets_its_last_definition_and_a_warning() {
    let mut board = board(vec![]).offers(server("s", Dynamic), &["t", "u", "t", "t"]);
    board.offered[0].as_mut().unwrap()[3].description = Some("last".into());
    let admission = board.registers(&["s.t: 9, 99s", "s.u: 9, 99s"]);
    assert_eq!(admission.tools[0].descriptor.description.as_deref(), Some("last"));
    assert_eq!(
        told(&admission, Level::Warning),
        ["MCP server 's' lists tool 't' more than once; the last definition is used"]
    );
}

#[test]
fn what_is_quarantined_and_what_is_repaired_is_told() {
    let plan = board(vec![]).plan;
    let spec = server("s", Dynamic);
    let quarantined = [Some("t"), None].map(|tool| QuarantinedTool {
        tool: tool.map(str::to_owned),
        reason: "it is odd".to_owned(),
    });
    let repaired = |name: &str| ToolDescriptor {
        repairs: vec![format!("{name} was mended"), "and more".into()],
        ..ToolDescriptor::named(name)
    };
    let warnings = |tools: &[ToolDescriptor]| {
        let quarantined = &quarantined;
        let (tools, before) = (Some(tools), None);
        let offer = Offer { plan: &spec, tools, available: false, before, quarantined };
        told(&admit(&plan, &[], &[offer]), Level::Warning)
    };
    let tools = [ToolDescriptor::named("a"), repaired("b"), repaired("c")];
    let quarantines = [
        "Tool 't' of MCP server 's' is quarantined: it is odd",
        "A tool of MCP server 's' is quarantined: it is odd",
    ];
    assert_eq!(warnings(&tools[..1]), quarantines);
    assert_eq!(
        warnings(&tools[..2])[2..],
        [
            "Tool 'b' of MCP server 's' is listed in a repaired form, because strict clients refuse its definition: b was mended"
        ]
    );
    assert_eq!(
        warnings(&tools)[2..],
        [
            "2 tools of MCP server 's' are listed in a repaired form, because strict clients refuse their definitions; the first is 'b': b was mended"
        ]
    );
    let refused = Notice::Refused { message: "as the violation says".into() };
    assert_eq!(
        (refused.level(), refused.to_string().as_str()),
        (Level::Error, "as the violation says")
    );
}

proptest! {
    /// Every offered tool is either admitted, or refused with a violation, or hidden by a list; never lost.
    #[test]
    fn no_tool_is_lost(
        offered in proptest::collection::hash_set("[a-d]{1,2}", 0..8),
        configured in proptest::collection::hash_set("[a-d]{1,2}", 0..8),
        strict in any::<bool>(),
    ) {
        let mode = if strict { Strict } else { Dynamic };
        let names: Vec<&str> = offered.iter().map(String::as_str).collect();
        let entries = configured.iter().map(|name| entry(name, Some(1), None)).collect();
        let admission = board(entries).offers(server("s", mode), &names).admit();
        prop_assert_eq!(admission.tools.len() + admission.violations.len(), offered.len());
        for tool in &admission.tools {
            let explicit = configured.contains(tool.name.tool());
            prop_assert_eq!(tool.limits.max_instances, if explicit { 1 } else { 9 });
            prop_assert!(explicit || !strict);
        }
    }
}

#[test]
fn a_prompt_tool_is_a_local_tool_and_says_nothing_about_tools_of_servers() {
    let prompt = PromptToolPlan {
        template: "x".into(),
        provider: None,
        model: None,
        instructions: None,
        tools: Vec::new(),
        max_depth: 1,
    };
    let entry = ToolEntry {
        prompt: Some(prompt),
        description: Some("mine".into()),
        ..entry("search", Some(2), None)
    };
    let admission = board(vec![entry]).offers(server("crm", Strict), &["search"]).admit();
    let names: Vec<_> = admission.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["local.search"]);
    assert_eq!(admission.tools[0].limits.max_instances, 2);
    assert_eq!(admission.tools[0].descriptor.description.as_deref(), Some("mine"));
    // The strict server's tool of the same name has no entry.
    assert_eq!(admission.violations.len(), 1);
}
