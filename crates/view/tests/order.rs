//! Property test: a declared tool keeps its position and its name, whatever tools come and go.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use switchboard_model::{CanonicalName, Exposure, ExposureMode, Plan, ServerName, ToolDescriptor};
use switchboard_registry::{Catalog, CatalogTool};
use switchboard_view::{
    Found, Index, ListEra, Past, Selection, View, ViewKey, read_declared, snapshot_tools,
};

/// A shared tool, or one of the session `me` if the server is called `own`.
fn tool(server: &str, name: &str, version: u8) -> Arc<CatalogTool> {
    let is_own = server == "own";
    let server = if is_own { ServerName::attached("0123") } else { ServerName::new(server) };
    let mut descriptor = ToolDescriptor::named(name);
    descriptor.description = Some(format!("Version {version}"));
    Arc::new(CatalogTool {
        owner: is_own.then(|| "me".into()),
        alias: is_own.then(|| ServerName::new("own")),
        ..CatalogTool::new(CanonicalName::new(&server, name), descriptor)
    })
}

/// One state: the tools of the catalog in their order, and the switched ones.
#[derive(Debug, Clone)]
struct Moment {
    tools: BTreeSet<(String, String, u8)>,
    backwards: bool,
    switched: BTreeMap<String, bool>,
}

fn moment() -> impl Strategy<Value = Moment> {
    let server = prop::sample::select(vec!["a", "a__b", "b", "own"]);
    let name = prop::sample::select(vec!["b__c", "c", "d", "x.y", "x_y", "é", "enable_toolset"]);
    let tools = prop::collection::btree_set((server, name, 0u8..2), 0..14);
    let switched = prop::collection::btree_map(
        prop::sample::select(vec!["a.c", "b.d", "own.c", "a__b.c"]),
        any::<bool>(),
        0..3,
    );
    (tools, any::<bool>(), switched).prop_map(|(tools, backwards, switched)| Moment {
        tools: tools.into_iter().map(|(s, t, v)| (s.to_owned(), t.to_owned(), v)).collect(),
        backwards,
        switched: switched.into_iter().map(|(tool, is_on)| (tool.to_owned(), is_on)).collect(),
    })
}

fn view(moment: &Moment, past: &Arc<Past>) -> View {
    let mut seen = HashSet::new();
    let mut tools: Vec<_> = moment
        .tools
        .iter()
        .filter(|(server, name, _)| seen.insert((server.clone(), name.clone())))
        .map(|(server, name, version)| tool(server, name, *version))
        .collect();
    if moment.backwards {
        tools.reverse();
    }
    let catalog = Catalog::new(1, tools);
    let index = Index::new(&catalog, &Plan::default()).with_owned(catalog.owned_by("me"));
    let selection = Selection {
        tools: moment.switched.clone(),
        owner: Some("me".into()),
        ..Selection::default()
    };
    let key =
        ViewKey { scope: Arc::default(), selection: Arc::new(selection), past: Arc::clone(past) };
    let exposure = Exposure { mode: ExposureMode::Legacy, ..Exposure::default() };
    View::new(Arc::new(index), &exposure, &key)
}

fn names(view: &View) -> Vec<String> {
    view.tools().filter_map(|entry| Some(entry.name.as_deref()?.to_owned())).collect()
}

/// The tool that each name resolves to.
fn meanings(view: &View) -> BTreeMap<String, String> {
    let tools = view.tools();
    tools
        .filter_map(|entry| {
            Some((entry.name.as_deref()?.to_owned(), entry.shown_name().to_string()))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_was_declared_keeps_its_order_and_what_is_new_comes_behind(
        moments in prop::collection::vec(moment(), 2..6),
    ) {
        let mut past = Arc::default();
        let mut before: Vec<String> = Vec::new();
        for moment in &moments {
            let view = view(moment, &past);
            let now = names(&view);
            let still: Vec<_> = before.iter().filter(|name| now.contains(name)).collect();
            let kept: Vec<_> = now.iter().take(still.len()).collect();
            prop_assert_eq!(&still, &kept, "{:?} then {:?}", before, now);
            let distinct: HashSet<_> = now.iter().collect();
            prop_assert_eq!(distinct.len(), now.len());
            for name in &now {
                let is_legal = name.len() <= 64
                    && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                prop_assert!(is_legal && name != "enable_toolset", "{}", name);
            }
            past = view.past().clone();
            before = now;
        }
    }

    #[test]
    fn names_that_were_shown_still_lead_to_their_tool_while_it_is_there(
        moments in prop::collection::vec(moment(), 2..6),
    ) {
        let mut past = Arc::default();
        let mut meant: BTreeMap<String, String> = BTreeMap::new();
        for moment in &moments {
            let view = view(moment, &past);
            let now = meanings(&view);
            let shown: HashSet<_> = now.values().cloned().collect();
            for (name, tool) in &meant {
                if now.contains_key(name) || !shown.contains(tool) {
                    continue;
                }
                match view.find(name) {
                    Found::Tool(entry) => prop_assert_eq!(&entry.shown_name().to_string(), tool),
                    other => prop_assert!(false, "{} led to {:?}", name, other),
                }
            }
            meant.extend(now);
            past = view.past().clone();
        }
    }

    #[test]
    fn a_kept_snapshot_brings_the_order_back(moments in prop::collection::vec(moment(), 2..4)) {
        let mut past: Arc<Past> = Arc::default();
        for moment in &moments {
            let seen = view(moment, &past);
            let kept = read_declared(&snapshot_tools(&seen));
            prop_assert_eq!(&kept[..], seen.past().declared());
            let restored = Arc::new(Past::new(kept, seen.past().retired().to_vec()));
            prop_assert!(view(moment, &restored).lists_same(&seen));
            // The same state gives the same bytes.
            let again = view(moment, seen.past());
            prop_assert_eq!(again.list(ListEra::Session), seen.list(ListEra::Session));
            past = seen.past().clone();
        }
    }

    #[test]
    fn tools_of_a_session_move_no_name_of_others(moment in moment()) {
        let alone = Moment {
            tools: moment.tools.iter().filter(|(server, ..)| server != "own").cloned().collect(),
            ..moment.clone()
        };
        let (with, without) = (view(&moment, &Arc::default()), view(&alone, &Arc::default()));
        let with = meanings(&with);
        for (name, tool) in meanings(&without) {
            prop_assert_eq!(with.get(&name), Some(&tool));
        }
    }
}
