//! Ranked search over tools: BM25 over names, titles, descriptions and arguments.

use bm25::{Document, SearchEngine, SearchEngineBuilder, Tokenizer};
use serde_json::Value;

use crate::index::Entry;

/// A search result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Position in the index.
    pub tool: usize,
    pub score: f32,
}

/// Splits tool names and descriptions into words: `getHTTPQuote_by-id` becomes get, http, quote, by, id.
#[derive(Debug, Clone, Default)]
pub(crate) struct WordTokenizer;

impl Tokenizer for WordTokenizer {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for run in text.split(|c: char| !c.is_alphanumeric()) {
            split_run(run, &mut words);
        }
        words
    }
}

fn split_run(run: &str, words: &mut Vec<String>) {
    let characters: Vec<char> = run.chars().collect();
    let mut word = String::new();
    for (at, c) in characters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| characters.get(at));
        let after = characters.get(at + 1);
        let starts_word = c.is_uppercase()
            && (before.is_some_and(|b| b.is_lowercase() || b.is_numeric())
                || (before.is_some_and(|b| b.is_uppercase())
                    && after.is_some_and(|a| a.is_lowercase())));
        if starts_word && !word.is_empty() {
            words.push(stem(std::mem::take(&mut word)));
        }
        word.extend(c.to_lowercase());
    }
    if !word.is_empty() {
        words.push(stem(word));
    }
}

/// Removes a plural ending. Further stemming would depend on the language.
fn stem(word: String) -> String {
    if let Some(root) = word.strip_suffix("ies").filter(|root| root.len() > 1) {
        return format!("{root}y");
    }
    match word.strip_suffix('s') {
        Some(root) if root.len() > 2 && !root.ends_with(['s', 'u', 'i']) => root.to_owned(),
        _ => word,
    }
}

/// The search engine of one index.
#[derive(Debug)]
pub(crate) struct Search(SearchEngine<u32, u32, WordTokenizer>);

impl Search {
    pub(crate) fn new<'a>(entries: impl Iterator<Item = &'a Entry>) -> Self {
        let documents = entries.enumerate().filter_map(|(at, entry)| {
            Some(Document { id: u32::try_from(at).ok()?, contents: words_of(entry) })
        });
        let documents: Vec<_> = documents.collect();
        Self(SearchEngineBuilder::with_tokenizer_and_documents(WordTokenizer, documents).build())
    }

    /// The best matches among the tools for which `is_visible` holds, best first.
    pub(crate) fn find(
        &self,
        query: &str,
        limit: usize,
        is_visible: impl Fn(usize) -> bool,
    ) -> Vec<Hit> {
        let mut hits: Vec<Hit> = self
            .0
            .search(query, None)
            .into_iter()
            .map(|found| Hit { tool: found.document.id as usize, score: found.score })
            .filter(|hit| hit.score > 0.0 && is_visible(hit.tool))
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.tool.cmp(&b.tool)));
        hits.truncate(limit);
        hits
    }
}

/// The searched text of a tool. The name occurs three times, so that it has more weight than the description.
fn words_of(entry: &Entry) -> String {
    let tool = &entry.tool.descriptor;
    let mut text = format!("{0} {0} {0} {1} ", tool.name, entry.tool.name.server());
    for part in [&tool.title, &tool.description].into_iter().flatten() {
        text.push_str(part);
        text.push(' ');
    }
    let schema = tool.input_schema.parse();
    let arguments = schema.get("properties").and_then(Value::as_object);
    for (name, about) in arguments.into_iter().flatten() {
        text.push_str(name);
        text.push(' ');
        text.push_str(about.get("description").and_then(Value::as_str).unwrap_or_default());
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        let words = |text: &str| WordTokenizer.tokenize(text).join(" ");
        assert_eq!(words("getHTTPQuote_by-id"), "get http quote by id");
        assert_eq!(words("list_companies 2Things"), "list company 2 thing");
        assert_eq!(words("status address Gruß"), "status address gruß");
        assert_eq!(words("  "), "");
    }
}
